"""The values that filter expressions compare: JSON values, timestamps and durations.

A missing key reads as null. An ordering or a test of text is false on null, a time computed from
null is null, and `==` and `!=` treat null as a value of its own.
"""

from __future__ import annotations

from operator import ge, gt, le, lt

from mngr.errors import UsageError
from mngr.query.fields import shorten
from mngr.query.words import BadExpression


class Timestamp(int):
    """Microseconds since 1970. Not a datetime, which takes a millisecond to import."""

    __slots__ = ()


class Duration(int):
    """Microseconds."""

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
    """Return CEL's name for the type of a value."""
    return _KINDS.get(type(value)) or next(
        (kind for known, kind in _KINDS.items() if isinstance(value, known)), "unknown"
    )


def parse_timestamp(text: str) -> Timestamp | None:
    """Parse an ISO 8601 date or time; without an offset it is UTC."""
    import datetime

    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return Timestamp((moment - epoch) // datetime.timedelta(microseconds=1))


def _timestamp(text: str) -> Timestamp:
    found = parse_timestamp(text)
    if found is None:
        raise BadExpression(f"{shorten(repr(text))} is not a timestamp")
    return found


def parse_duration(text: str) -> Duration | None:
    """Parse a duration as it is written everywhere in mngr: `14d`, `1h30m`."""
    from mngr.model import durations

    try:
        return _seconds(durations.parse_duration(text))
    except UsageError:
        return None


def _seconds(value: float) -> Duration | None:
    """Return a number of seconds as a duration; infinity and not-a-number are none."""
    return Duration(round(value * 1_000_000)) if abs(value) < 2**63 else None


def _toward(value: object, other: object) -> object:
    """Convert a value for a comparison: records have times as text, durations as seconds."""
    if isinstance(other, Timestamp) and isinstance(value, str):
        return _timestamp(value)
    if isinstance(other, Duration) and type(value) in (int, float):
        return _seconds(value)  # type: ignore[arg-type]  # it is a number
    return value


def equal(left: object, right: object) -> bool:
    """Compare as CEL does: numbers by value, true is not 1, values of other types differ."""
    left, right = _toward(left, right), _toward(right, left)
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, (Timestamp, Duration)) or isinstance(right, (Timestamp, Duration)):
        return type(left) is type(right) and left == right
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return left == right


def order(op: str, left: object, right: object) -> bool:
    """Apply `< <= > >=` to values of one type; false when either is null."""
    a, b = _toward(left, right), _toward(right, left)
    if a is None or b is None:
        return False
    kinds = {kind_of(a), kind_of(b)}
    if kinds <= {"int", "double"} or (len(kinds) == 1 and kinds <= _SORTABLE):
        return bool(_ORDER[op](a, b))  # type: ignore[arg-type]  # both are sortable
    raise _uncomparable(kind_of(left), kind_of(right))


_SORTABLE = {"bool", "string", "timestamp", "duration"}
_ORDER = {"<": lt, "<=": le, ">": gt, ">=": ge}


def _uncomparable(left: str, right: str) -> BadExpression:
    kinds = {left, right}
    hint = 'write duration("10m")' if kinds == {"string", "duration"} else ""
    if kinds in ({"string", "int"}, {"string", "double"}):
        hint = "text is written with quotes, a number without"
    return BadExpression(f"cannot compare {left} with {right}", hint=hint)


def contained(item: object, container: object) -> bool:
    """Apply `in`: an element of a list, or a key of a map."""
    if container is None:
        return False
    if isinstance(container, dict):
        return item in container if isinstance(item, str) else False
    if isinstance(container, (list, tuple)):
        return any(equal(item, each) for each in container)
    hint = "use contains()" if isinstance(container, str) else ""
    raise BadExpression(f"'in' requires a list or a map, not {kind_of(container)}", hint=hint)


def shift(op: str, left: object, right: object) -> Timestamp | Duration | None:
    """Add or subtract times; text is read as a timestamp. Null when either side is null."""
    a, b = (_timestamp(each) if isinstance(each, str) else each for each in (left, right))
    if a is None or b is None:
        return None
    if isinstance(a, (Timestamp, Duration)) and isinstance(b, (Timestamp, Duration)):
        micros = a + b if op == "+" else a - b
        if isinstance(b, Duration):
            return type(a)(micros)
        if isinstance(a, Timestamp) and op == "-":
            return Duration(micros)
    fault = f"cannot use '{op}' on {kind_of(left)} and {kind_of(right)}"
    raise BadExpression(fault, hint="only times and durations can be added and subtracted")


def compute(op: str, left: object, right: object) -> object:
    """Apply a comparison, `in`, `+` or `-`."""
    if op in ("==", "!="):
        return equal(left, right) is (op == "==")
    if op == "in":
        return contained(left, right)
    return order(op, left, right) if op in _ORDER else shift(op, left, right)
