"""Filter expressions, a subset of CEL, the Common Expression Language; see docs/filters.md."""

from __future__ import annotations

from time import time

from mngr.errors import UsageError, shorten, suggestion
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

Kind: TypeAlias = "str | Mapping[str, Kind]"
Row: TypeAlias = "Mapping[str, Json]"
MAX_NAME = 1_000
_INSIDE = {"map": "any", "any": "any", "string map": "string"}


class Fields:
    """The known names of a row, each with its kind.

    A kind is `bool int double string list any`, or `map` (open keys, values of any kind), or
    `string map` (open keys, text values), or a mapping of further names. Times are kept as
    text, so they are `string`. With `more`, other top-level names are allowed too.
    """

    def __init__(self, kinds: Mapping[str, Kind], more: bool = False) -> None:
        self.kinds = kinds
        self.more = more

    def names(self) -> list[str]:
        """Return all known names, `host.id` after `host`."""
        found = []
        for name, kind in self.kinds.items():
            inner = [] if isinstance(kind, str) else Fields(kind).names()
            found += [name, *(f"{name}.{each}" for each in inner)]
        return found

    def find(self, dotted: str, place: str, otherwise: str = "") -> Kind:
        """Return the kind of a name such as `host.name`; an error names the nearest one."""
        kind: Kind | None = self.kinds
        rest = dotted
        while rest and kind is not None:
            if isinstance(kind, str):
                kind, rest = _INSIDE.get(kind), ""  # the rest is one key, which may have dots
            else:
                head, _, rest = rest.partition(".")
                kind = kind.get(head, "any" if self.more and kind is self.kinds else None)
        if kind is None or len(dotted) > MAX_NAME:
            hint = suggestion(dotted[:MAX_NAME].lower(), self.names(), otherwise)
            raise UsageError(f"unknown field {shorten(repr(dotted))} {place}", hint)
        return kind


def select(row: Row, dotted: str) -> Json | None:
    """Return the value of `host.name` or `labels.a.b` in a row; the longest key with dots wins."""
    if dotted in row:
        return row[dotted]
    head, dot, _ = dotted.rpartition(".")
    while dot:
        found = row.get(head)
        if isinstance(found, dict):
            return select(found, dotted[len(head) + 1 :])
        head, dot, _ = head.rpartition(".")
    return None


def compile_filter(
    expression: str, fields: Fields, where: str = "--include", clock: Callable[[], float] = time
) -> Callable[[Row], bool]:
    """Return a function that tests a row. Both raise UsageError, which names `where`."""
    from mngr.query.expression import Expression  # a list without a filter does not import it

    return Expression(expression, fields, where, clock).parse()


def mentioned(expression: str) -> set[str]:
    """Return the top-level names that an expression uses."""
    from mngr.query.expression import words

    return {word for kind, word, _ in words(expression) if kind == "name"}
