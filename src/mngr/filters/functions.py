"""The functions of expressions. Each may be written `f(x, y)` or `x.f(y)`."""

from __future__ import annotations

import re

from mngr.filters.values import (
    Duration,
    Fault,
    Timestamp,
    kind_of,
    parse_duration,
    parse_timestamp,
    seconds,
)
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SUBJECT = 65_536
MAX_PATTERN = 1_000


class Function(Struct):
    """What to call, the kinds each argument may have, and the kind of the result."""

    name: str
    apply: Callable[[list[object]], object]
    takes: tuple[tuple[str, ...], ...]
    gives: str

    def __call__(self, values: list[object]) -> object:
        if None in values:
            return False if self.gives == "bool" else None
        for value, kinds in zip(values, self.takes, strict=True):
            self.accept(kind_of(value), kinds)
        return self.apply(values)

    def accept(self, kind: str, kinds: tuple[str, ...]) -> None:
        """Fault unless an argument of `kind` will do."""
        if kind not in (*kinds, "null", "any"):
            raise Fault(f"{self.name}() takes {_either(kinds)}, not {kind}")


def _either(kinds: tuple[str, ...]) -> str:
    return " or ".join(", ".join(kinds).rsplit(", ", 1))


def _matches(subject: str, pattern: str) -> bool:
    if len(subject) > MAX_SUBJECT:
        raise Fault(f"matches() reads at most {MAX_SUBJECT:,} characters, not {len(subject):,}")
    return compile_pattern(pattern).search(subject) is not None


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression of Python's kind, in which every error is a Fault."""
    if len(pattern) > MAX_PATTERN:
        raise Fault(f"pattern longer than {MAX_PATTERN:,} characters")
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set" is not the user's concern
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        reason = repr(str(error))[1:-1]  # it may quote any character of the pattern
        raise Fault(f"bad pattern: {reason}") from None


def _size(value: object) -> int | None:
    return len(value) if isinstance(value, (str, list, tuple, dict)) else None


def _int(value: object) -> int | None:
    if isinstance(value, str):
        found = re.fullmatch("[-+]?[0-9]{1,19}", value)
        number: int | float | None = int(value) if found else None
    elif isinstance(value, (Timestamp, Duration)):
        number = value.micros // 1_000_000
    else:
        number = value if isinstance(value, (int, float)) else None
    # The bounds also turn away infinities and not-a-number.
    return int(number) if number is not None and -(2**63) <= number < 2**63 else None


def _double(value: object) -> float | None:
    if isinstance(value, (Timestamp, Duration)):
        return value.micros / 1_000_000
    try:
        return float(value) if isinstance(value, (str, int, float)) else None
    except (ValueError, OverflowError):
        return None


def _string(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    if isinstance(value, Duration):
        return f"{value.micros / 1_000_000:.15g}s"
    if isinstance(value, Timestamp):
        return _iso(value)
    return str(value)


def _iso(moment: Timestamp) -> str:
    import datetime

    try:
        span = datetime.timedelta(microseconds=moment.micros)
        when = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC) + span
    except OverflowError:
        raise Fault("the moment is not between the years 1 and 9999") from None
    return when.isoformat().replace("+00:00", "Z")


def _timestamp(value: object) -> Timestamp | None:
    if isinstance(value, str):
        return parse_timestamp(value)
    if isinstance(value, Timestamp):
        return value
    span = _duration(value)
    return None if span is None else Timestamp(span.micros)


def _duration(value: object) -> Duration | None:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, (int, float)):
        return seconds(value)
    return value if isinstance(value, Duration) else None


_TEXT = ("string",)
_NUMBERS = ("int", "double")
_TIMES = ("timestamp", "duration")
_SIZED = ("string", "list", "map")


def _of_text(name: str, test: Callable[[str, str], bool]) -> Function:
    """A test of one text by another."""
    return Function(
        name=name,
        apply=lambda values: test(str(values[0]), str(values[1])),
        takes=(_TEXT, _TEXT),
        gives="bool",
    )


def _of_one(name: str, convert: Callable[[object], object], *kinds: str, gives: str) -> Function:
    """A value made from one other."""
    return Function(name=name, apply=lambda values: convert(values[0]), takes=(kinds,), gives=gives)


FUNCTIONS = {
    each.name: each
    for each in (
        _of_text("startsWith", str.startswith),
        _of_text("endsWith", str.endswith),
        _of_text("contains", str.__contains__),
        _of_text("matches", _matches),
        _of_one("size", _size, *_SIZED, gives="int"),
        _of_one("int", _int, *_TEXT, *_NUMBERS, *_TIMES, gives="int"),
        _of_one("double", _double, *_TEXT, *_NUMBERS, *_TIMES, gives="double"),
        _of_one("string", _string, *_TEXT, *_NUMBERS, *_TIMES, "bool", gives="string"),
        _of_one("timestamp", _timestamp, *_TEXT, *_NUMBERS, "timestamp", gives="timestamp"),
        _of_one("duration", _duration, *_TEXT, *_NUMBERS, "duration", gives="duration"),
    )
}
