"""What expressions compute with: JSON values, moments and spans of time.

Null is also what a missing key, an element past the end, or text that is no number reads as.
A test on null is false; a value made from null is null; only `==` and `!=` look at it.
"""

from __future__ import annotations

from mngr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sized

MAX_JOINED = 1_000_000


class Fault(Exception):
    """An expression that has no value for this row; `&&` and `||` may not need it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class _Micros:
    """Whole microseconds; our own class because importing datetime costs a millisecond."""

    __slots__ = ("micros",)

    def __init__(self, micros: int) -> None:
        self.micros = micros

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.micros == self.micros

    def __hash__(self) -> int:
        return hash(self.micros)


class Timestamp(_Micros):
    """A moment, since 1970."""

    __slots__ = ()


class Duration(_Micros):
    """A span of time."""

    __slots__ = ()


_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    float: "double",
    str: "string",
    list: "list",
    tuple: "list",
    dict: "map",
    Timestamp: "timestamp",
    Duration: "duration",
}


def kind_of(value: object) -> str:
    """CEL's name for the type of a value."""
    return _KINDS.get(type(value)) or next(
        (kind for known, kind in _KINDS.items() if isinstance(value, known)), "unknown"
    )


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def parse_timestamp(text: str) -> Timestamp | None:
    """An ISO 8601 date or time; without an offset it is UTC."""
    import datetime

    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return Timestamp((moment - epoch) // datetime.timedelta(microseconds=1))


def parse_duration(text: str) -> Duration | None:
    """A span as it is written everywhere else in mngr, or negative."""
    from mngr import durations

    try:
        span = seconds(durations.parse_duration(text.removeprefix("-")))
    except UsageError:
        return None
    return Duration(-span.micros) if span and text.startswith("-") else span


def aligned(left: object, right: object) -> tuple[object, object]:
    """Text beside a moment is read as a moment, a number beside a span as seconds.

    Our records hold times as text and spans as seconds, and people compare them directly.
    """
    return _toward(left, right), _toward(right, left)


def _toward(value: object, other: object) -> object:
    if isinstance(other, Timestamp) and isinstance(value, str):
        return parse_timestamp(value)
    if isinstance(other, Duration) and isinstance(value, (int, float)):
        return value if isinstance(value, bool) else seconds(value)
    return value


def seconds(value: float) -> Duration | None:
    """A number of seconds as a span; infinities and the like are none."""
    return Duration(round(value * 1_000_000)) if abs(value) < 2**63 else None


def equal(left: object, right: object) -> bool:
    """CEL equality: numbers by value, true is not 1, different types are simply unequal."""
    if type(left) is str and type(right) is str:
        return left == right
    left, right = aligned(left, right)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right


def order(op: str, left: object, right: object) -> bool:
    """`< <= > >=` between values of one type; false when either is null."""
    a, b = aligned(left, right)
    if a is None or b is None:
        return False
    if (is_number(a) and is_number(b)) or (type(a) is type(b) and isinstance(a, (str, bool))):
        return _ORDER[op](a, b)
    if isinstance(a, _Micros) and isinstance(b, _Micros) and type(a) is type(b):
        return _ORDER[op](a.micros, b.micros)
    raise uncomparable(kind_of(left), kind_of(right))


# Values of one sortable type reach these, which is more than the types can say.
_ORDER: dict[str, Callable[[object, object], bool]] = {
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


def uncomparable(left: str, right: str) -> Fault:
    """The fault of comparing two kinds, with the conversion that was probably meant."""
    kinds = {left, right}
    hint = ""
    if kinds in ({"string", "int"}, {"string", "double"}):
        hint = "quotes make text, int(…) and double(…) make numbers"
    elif kinds == {"string", "duration"}:
        hint = 'write duration("10m")'
    return Fault(f"cannot compare {left} with {right}", hint)


def arithmetic(op: str, left: object, right: object) -> object:
    """`+ - * / %`; null when either side is."""
    if left is None or right is None:
        return None
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        if not isinstance(left, bool) and not isinstance(right, bool):
            return _compute(op, left, right)
    elif isinstance(left, str) and isinstance(right, str) and op == "+":
        _require_small(left, right)
        return left + right
    elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)) and op == "+":
        _require_small(left, right)
        return [*left, *right]
    elif isinstance(left, _Micros) or isinstance(right, _Micros):
        return _shift(op, left, right)
    raise _unusable(op, left, right)


def _require_small(left: Sized, right: Sized) -> None:
    """Doubling thirty times over is a short expression and a gigabyte."""
    if len(left) + len(right) > MAX_JOINED:
        raise Fault(f"'+' joins at most {MAX_JOINED:,} characters or elements")


def _unusable(op: str, left: object, right: object) -> Fault:
    return Fault(f"cannot use '{op}' on {kind_of(left)} and {kind_of(right)}")


def _compute(op: str, left: float, right: float) -> int | float:
    try:
        if isinstance(left, int) and isinstance(right, int):
            return _whole(op, left, right)
        if op == "/":
            return _divide(float(left), float(right))
        return _REAL[op](float(left), float(right))
    except OverflowError:
        raise Fault("number too big") from None
    except KeyError:
        raise _unusable(op, left, right) from None


_REAL: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def _divide(left: float, right: float) -> float:
    if right:
        return left / right
    import math

    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _whole(op: str, left: int, right: int) -> int:
    """64-bit integers; division cuts toward zero and the remainder has the dividend's sign."""
    if op in ("/", "%"):
        if right == 0:
            raise Fault("division by zero")
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        value = quotient if op == "/" else left - quotient * right
    else:
        value = left + right if op == "+" else left - right if op == "-" else left * right
    if not -(2**63) <= value < 2**63:
        raise OverflowError
    return value


def _shift(op: str, left: object, right: object) -> object:
    """Moments and spans; text beside either is a moment."""
    a, b = (parse_timestamp(each) if isinstance(each, str) else each for each in (left, right))
    if a is None or b is None:
        return None
    sign = {"+": 1, "-": -1}.get(op, 0)
    if sign and isinstance(a, _Micros) and isinstance(b, _Micros):
        micros = a.micros + sign * b.micros
        if isinstance(b, Duration):
            return type(a)(micros)
        if isinstance(a, Timestamp) and sign < 0:
            return Duration(micros)
        if isinstance(a, Duration) and sign > 0:
            return Timestamp(micros)
    raise _unusable(op, left, right)
