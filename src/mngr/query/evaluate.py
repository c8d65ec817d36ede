"""The functions of a filter expression; each takes a row and returns a value."""

from __future__ import annotations

import re

from mngr.query.fields import inside
from mngr.query.values import compute, kind_of, order
from mngr.query.words import BadExpression, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mngr.model.struct import Json
    from mngr.query.fields import Kind

    Value = Callable[[Mapping[str, Json]], object]

MAX_TEXT = 65_536  # that matches() searches
MAX_PATTERN = 1_000

_SAMPLES: dict[str, Json] = {
    "bool": True,
    "int": 1,
    "double": 1.0,
    "string": "1970-01-01",  # text is read as a timestamp where one is needed
    "list": [],
}
TESTS: dict[str, Callable[[str, str], bool]] = {
    "contains": str.__contains__,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
}


class Sample(dict[str, "Json"]):
    """A row, or a map with open keys, that has a value for every key."""

    def __init__(self, kind: Kind) -> None:
        fixed = {} if isinstance(kind, str) else {key: sample(kind[key]) for key in kind}
        super().__init__(fixed)
        self.other = sample(inside(kind) or "any") if isinstance(kind, str) else None

    def get(self, key: str, default: object = None) -> Json | None:
        return super().get(key, self.other)


def sample(kind: Kind) -> Json | None:
    """Return a value of that kind, or null if only a row can tell the kind."""
    if not isinstance(kind, str) or kind in ("map", "string map"):
        return Sample(kind)
    return _SAMPLES.get(kind)


def truth(value: object) -> bool:
    """Return the value of a test: null is false, anything else except a bool is an error."""
    if value is None:
        return False
    if not isinstance(value, bool):
        fault = f"expected true or false, found {kind_of(value)}"
        raise BadExpression(fault, hint="compare it with something")
    return value


def constant(value: object) -> Value:
    return lambda row: value


def walk(row: Mapping[str, Json], keys: list[str]) -> object:
    found: object = row
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def binary(word: Word, left: Value, right: Value) -> Value:
    """Apply a comparison, `in`, `+` or `-`."""

    def value(row: Mapping[str, Json]) -> object:
        one, other = left(row), right(row)
        try:
            compared = isinstance(row, Sample) and word.text in ("==", "!=")
            if compared and kind_of(one) != kind_of(other):
                order("<", one, other)  # fields of these kinds can never be equal
            return compute(word.text, one, other)
        except BadExpression as fault:
            fault.at = word.at
            raise

    return value


def logic(values: list[Value], settled: bool) -> Value:
    """Apply `&&` or `||`; as in CEL, an error in one part is ignored if another part decides."""

    def value(row: Mapping[str, Json]) -> bool:
        first: BadExpression | None = None
        for each in values:
            try:
                if truth(each(row)) is settled and not isinstance(row, Sample):
                    return settled
            except BadExpression as fault:
                first = first or fault
        if first:
            raise first
        return not settled

    return value


def text_test(word: Word, subject: object, argument: object) -> bool:
    for value in (subject, argument):
        if value is not None and not isinstance(value, str):
            raise BadExpression(f"{word.text}() requires text, not {kind_of(value)}", at=word.at)
    if not isinstance(subject, str) or not isinstance(argument, str):
        return False
    if word.text == "matches" and len(subject) > MAX_TEXT:
        size = f"{MAX_TEXT:,} characters, not {len(subject):,}"
        raise BadExpression(f"matches() reads at most {size}")
    return TESTS[word.text](subject, argument)


def pattern(pattern: str, at: int) -> str:
    """Return a regular expression of Python's kind, or refuse a bad one."""
    if len(pattern) > MAX_PATTERN:
        raise BadExpression(f"pattern longer than {MAX_PATTERN:,} characters", at)
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "possible nested set" is not the user's concern
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        reason = repr(str(error))[1:-1]  # it may quote any character of the pattern
        raise BadExpression(f"bad pattern: {reason}", at) from None
    return pattern
