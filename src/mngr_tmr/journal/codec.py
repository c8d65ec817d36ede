"""Dataclasses of the model to JSON and back; what an older run did not know has its default."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import TypeVar

from mngr.model.struct import Json

T = TypeVar("T")
Reader = Callable[[Json], object]


def to_json(value: object) -> Json:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)  # a StrEnum as well
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {str(key): to_json(each) for key, each in value.items()}
    assert is_dataclass(value), value
    assert not isinstance(value, type), value
    return {name: to_json(getattr(value, name)) for name in _names(type(value))}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def from_json(kind: type[T], value: Json) -> T:
    """A ValueError names what does not fit."""
    if not isinstance(value, dict):
        raise ValueError(f"{kind.__name__}: not an object")
    readers = _readers(kind)
    known = {name: readers[name](each) for name, each in value.items() if name in readers}
    try:
        return kind(**known)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


# Types are looked into once, not for every event of a journal.


_known: dict[type, dict[str, Reader]] = {}


def _readers(kind: type) -> dict[str, Reader]:
    if kind not in _known:
        hints = typing.get_type_hints(kind)
        _known[kind] = {name: _reader(hint) for name, hint in hints.items()}
    return _known[kind]


@cache
def _reader(kind: object) -> Reader:
    origin = typing.get_origin(kind)
    if origin is types.UnionType or origin is typing.Union:
        inner = _reader(next(x for x in typing.get_args(kind) if x is not type(None)))
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        return _tuple_reader(typing.get_args(kind))
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda value: from_json(kind, value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return lambda value: kind(str(value))
    return _float if kind is float else lambda value: _scalar(kind, value)


def _tuple_reader(kinds: tuple[object, ...]) -> Reader:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        read = _reader(kinds[0])
        return lambda value: tuple(read(each) for each in _list(value))
    readers = [_reader(each) for each in kinds]
    return lambda value: tuple(read(each) for read, each in zip(readers, _list(value), strict=True))


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise ValueError(f"not a list: {value!r:.60}")
    return value


def _float(value: Json) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"not a number: {value!r:.60}")
    return float(typing.cast("float", value))


def _scalar(kind: object, value: Json) -> object:
    if type(value) is not kind:
        raise ValueError(f"not of the type {kind}: {value!r:.60}")
    return value
