"""Dataclasses of the model to JSON and back; what an older run did not know has its default."""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TypeVar

from mngr.struct import Json

T = TypeVar("T")


def to_json(value: object) -> Json:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    if isinstance(value, dict):
        return {str(key): to_json(each) for key, each in value.items()}
    if isinstance(value, StrEnum):
        return str(value)
    assert value is None or isinstance(value, (bool, int, float, str)), value
    return value


def from_json(kind: type[T], value: Json) -> T:
    """A ValueError names what does not fit."""
    if not isinstance(value, dict):
        raise ValueError(f"{kind.__name__}: not an object")
    hints = _hints(kind)
    known = {name: _read(hints[name], each) for name, each in value.items() if name in hints}
    try:
        return kind(**known)
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


_known: dict[type, dict[str, object]] = {}


def _hints(kind: type) -> dict[str, object]:
    if kind not in _known:
        _known[kind] = typing.get_type_hints(kind)
    return _known[kind]


def _read(kind: object, value: Json) -> object:
    origin = typing.get_origin(kind)
    if origin is types.UnionType or origin is typing.Union:
        inner = [each for each in typing.get_args(kind) if each is not type(None)]
        return None if value is None else _read(inner[0], value)
    if origin is tuple:
        return _tuple(typing.get_args(kind), value)
    if isinstance(kind, type) and is_dataclass(kind):
        return from_json(kind, value)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(str(value))
    return _scalar(kind, value)


def _tuple(kinds: tuple[object, ...], value: Json) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise ValueError(f"not a list: {value!r:.60}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_read(kinds[0], each) for each in value)
    return tuple(_read(kind, each) for kind, each in zip(kinds, value, strict=True))


def _scalar(kind: object, value: Json) -> object:
    wanted = (int, float) if kind is float else (kind,)
    if type(value) not in wanted:
        raise ValueError(f"not of the type {kind}: {value!r:.60}")
    return float(typing.cast("float", value)) if kind is float else value
