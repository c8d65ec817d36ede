"""The operators and functions of filter expressions; a duration is a number of seconds.

A missing key is null: `==` and `!=` treat null as a value, every other test of null is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from operator import ge, gt, le, lt

from mngr.errors import UsageError, shorten
from mngr.model.durations import parse_duration
from mngr.model.events import epoch

MAX_TEXT = 65_536  # that matches() searches
MAX_PATTERN = 1_000


class Timestamp(float):
    """Seconds since 1970. Not a datetime, which takes a millisecond to import."""


Function = Callable[[object, object], object]

_KINDS = {type(None): "null", bool: "bool", int: "number", float: "number"}
_KINDS |= {Timestamp: "timestamp", list: "list", dict: "map"}
_ORDER = {"<": lt, "<=": le, ">": gt, ">=": ge}
_HINT = 'write text with quotes, a number without, and a duration as duration("10m")'


def kind_of(value: object) -> str:
    return _KINDS.get(type(value), "text")  # text may be of a class of its own, such as State


def as_time(value: object) -> object:
    """Return text as a time, as records contain it, and any other value as it is."""
    if not isinstance(value, str):
        return value
    if (seconds := epoch(value)) is None:
        raise UsageError(f"{shorten(repr(value))} is not a timestamp")
    return Timestamp(seconds)


def compare(op: str, left: object, right: object) -> bool:
    """Apply `== != < <= > >=`; text next to a timestamp is a time."""
    if isinstance(left, Timestamp) or isinstance(right, Timestamp):
        left, right = as_time(left), as_time(right)
    if op not in _ORDER:
        return equal(left, right) is (op == "==")
    if left is None or right is None:
        return False
    require_one_kind(left, right)
    if isinstance(left, (list, dict)):
        raise UsageError(f"a {kind_of(left)} has no order")
    return bool(_ORDER[op](left, right))  # type: ignore[arg-type]  # both have an order


def require_one_kind(left: object, right: object) -> None:
    """Raise an error for values that are never equal; text may be a time, null may be anything."""
    kinds = {kind_of(left), kind_of(right)}
    if len(kinds) > 1 and "null" not in kinds and kinds != {"text", "timestamp"}:
        hint = _HINT if kinds == {"text", "number"} else ""
        raise UsageError(f"cannot compare {kind_of(left)} with {kind_of(right)}", hint)


def equal(left: object, right: object) -> bool:
    """Compare as CEL does: numbers by value, true is not 1, values of other types differ."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right


def contained(item: object, container: object) -> bool:
    """Apply `in`: an element of a list, or a key of a map."""
    if container is None or isinstance(container, (list, dict)):
        return any(equal(item, each) for each in container or ())
    fault = f"'in' requires a list or a map, not {kind_of(container)}"
    raise UsageError(fault, "use contains() for text")


def minus(now: object, value: object) -> float | None:
    """Return `now - create_time`, a number of seconds, or `now - duration("2h")`, a timestamp."""
    assert isinstance(now, Timestamp)
    value = as_time(value)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise UsageError(f"cannot subtract {kind_of(value)} from a timestamp")
    return float(now - value) if isinstance(value, Timestamp) else Timestamp(now - value)


def text_test(test: Callable[[str, str], bool], value: object, text: object) -> bool:
    """Apply a test of text, which is false for null."""
    if value is not None and not isinstance(value, str):
        raise UsageError(f"expected text, found {kind_of(value)}")
    return test(value or "", str(text)) and value is not None  # a bad pattern is always an error


def matches(text: str, pattern: str) -> bool:
    if len(text) > MAX_TEXT:
        raise UsageError(f"matches() reads at most {MAX_TEXT:,} characters, not {len(text):,}")
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression of Python's kind."""
    import warnings

    if len(pattern) > MAX_PATTERN:
        raise UsageError(f"pattern longer than {MAX_PATTERN:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set" is not the user's concern
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        reason = repr(str(error))[1:-1]  # it may quote any character of the pattern
        raise UsageError(f"bad pattern: {reason}") from None


RELATIONS: dict[str, Function] = {op: partial(compare, op) for op in ("==", "!=", *_ORDER)}
RELATIONS["in"] = contained
FUNCTIONS: dict[str, Function] = {
    "has": lambda field, _: field is not None,
    "timestamp": lambda _, text: as_time(text),
    "duration": lambda _, text: parse_duration(str(text)),
    ".contains": partial(text_test, str.__contains__),
    ".startsWith": partial(text_test, str.startswith),
    ".endsWith": partial(text_test, str.endswith),
    ".matches": partial(text_test, matches),
}
