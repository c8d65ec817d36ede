"""The fields of rows, and the columns and sort order given on a command line."""

from __future__ import annotations

from mngr.errors import UsageError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from mngr.model.struct import Json

    Kind: TypeAlias = str | Mapping[str, "Kind"]


class Fields:
    """The known names of a row, each with its kind.

    A kind is `bool int double string list any`, or `map` (open keys, values of any kind), or
    `string map` (open keys, text values), or a mapping of further names. Times are kept as
    text, so they are `string`. With `more`, other top-level names are allowed too.
    """

    def __init__(self, kinds: Mapping[str, Kind], more: bool = False) -> None:
        self.kinds = kinds
        self.more = more

    def kind(self, dotted: str) -> Kind | None:
        """Return the kind of a name such as `host.name`; None if it is unknown."""
        kind: Kind = self.kinds
        rest = dotted
        while rest:
            if isinstance(kind, str):
                return inside(kind)
            head, _, rest = rest.partition(".")
            if head not in kind:
                return "any" if self.more and kind is self.kinds else None
            kind = kind[head]
        return kind

    def names(self) -> list[str]:
        """Return all known names, `host.id` after `host`."""
        return _names(self.kinds, "")

    def nearest(self, name: str) -> str:
        """Return the hint `did you mean 'state'?`, or ""."""
        close = nearest(name.lower(), self.names())
        return f"did you mean '{close}'?" if close else ""

    def require(self, dotted: str, where: str) -> str:
        """Return the name if it is known; else raise an error with the nearest name."""
        if self.kind(dotted) is None:
            shown = shorten(repr(dotted))
            raise UsageError(f"unknown field {shown} in {where}", self.nearest(dotted))
        return dotted


def shorten(text: str) -> str:
    """Return the text shortened for an error of one line."""
    return text if len(text) <= 60 else text[:60] + "…"


def inside(kind: str) -> str | None:
    """Return the kind of the values in an open map, or None for a plain value."""
    return {"map": "any", "any": "any", "null": "any", "string map": "string"}.get(kind)


def _names(kinds: Mapping[str, Kind], prefix: str) -> list[str]:
    names: list[str] = []
    for name, kind in kinds.items():
        names.append(prefix + name)
        if not isinstance(kind, str):
            names += _names(kind, f"{prefix}{name}.")
    return names


def select(value: Mapping[str, Json], dotted: str) -> Json | None:
    """Return the value of `host.name` or `labels.a.b` in a row; the longest key with dots wins."""
    if dotted in value:
        return value[dotted]
    end = dotted.rfind(".")
    while end > 0:
        found = value.get(dotted[:end])
        if isinstance(found, dict):
            return select(found, dotted[end + 1 :])
        end = dotted.rfind(".", 0, end)
    return None


def parse_fields(text: str, fields: Fields) -> list[str]:
    """Return the known names in a list such as `name,state,host.name,labels.team`."""
    return [fields.require(name, "--fields") for name in _split(text, "--fields")]


def _split(text: str, where: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise UsageError(f"{where} has an empty field name: {shorten(repr(text))}")
    return names


def parse_sort(text: str, fields: Fields) -> Callable[[Mapping[str, Json]], tuple[object, ...]]:
    """Return a key for `sorted` from an order such as `-create_time,name` or `name:desc`.

    Nulls come last in either direction; values of different types are grouped by type.
    """
    columns = [_direction(item, fields) for item in _split(text, "--sort")]

    def key(row: Mapping[str, Json]) -> tuple[object, ...]:
        return tuple(_rank(select(row, name), down) for name, down in columns)

    return key


def _direction(item: str, fields: Fields) -> tuple[str, bool]:
    name, colon, word = item.rpartition(":")
    if not colon or word not in ("asc", "desc"):
        return fields.require(item.removeprefix("-"), "--sort"), item.startswith("-")
    if name.startswith("-"):
        raise UsageError(f"{item!r} in --sort gives the direction twice", f"use {item[1:]}")
    return fields.require(name, "--sort"), word == "desc"


def _rank(value: Json | None, down: bool) -> tuple[object, ...]:
    if value is None or (isinstance(value, float) and not abs(value) >= 0):
        return (1,)  # not-a-number has no place among numbers
    if isinstance(value, (bool, int, float, str)):
        kind = 0 if isinstance(value, bool) else 2 if isinstance(value, str) else 1
        ranked: tuple[int, bool | float | str] = (kind, value)
    else:
        import json

        ranked = (3, json.dumps(value, sort_keys=True))
    return (0, _Down(ranked) if down else ranked)


class _Down:
    """Reverses the order of a key, which may be text."""

    __slots__ = ("ranked",)

    def __init__(self, ranked: tuple[int, bool | float | str]) -> None:
        self.ranked = ranked

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and self.ranked == other.ranked

    def __lt__(self, other: _Down) -> bool:
        return other.ranked < self.ranked
