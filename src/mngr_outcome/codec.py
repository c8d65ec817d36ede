"""Dataclasses to JSON and back.

Types are exact, unknown keys are ignored, and a field that is missing gets its default. A
BadRecord names the key that does not fit.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from typing import TypeVar

from mngr.errors import BadRecord
from mngr.model.struct import Json

SCHEMA = 1
"""The schema of the files that agents write."""
T = TypeVar("T")
Reader = Callable[[Json], object]
KEY = "key"
"""In the metadata of a field: its key in JSON, if that cannot be a name in Python."""


def to_json(value: object) -> Json:
    """Return the JSON of a dataclass, or of a value in one."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)  # a StrEnum as well
    if isinstance(value, (list, tuple)):
        return [to_json(each) for each in value]
    return {key: to_json(getattr(value, each.name)) for key, each in _fields(type(value)).items()}


def from_json(kind: type[T], value: Json, what: str = "") -> T:
    """Return a `kind` made of a JSON object, which errors call `what`."""
    if not isinstance(value, dict):
        raise BadRecord(f"{what or kind.__name__} is not an object")
    readers = _readers(kind)
    known = {}
    for key, each in value.items():
        if key in readers:
            name, read = readers[key]
            known[name] = read(each)
    for key, missing in _fields(kind).items() if len(known) < len(readers) else ():
        if key not in value and _is_required(missing):
            raise BadRecord(f"{key!r} is missing")
    return kind(**known)


def loaded(data: bytes, limit: int, it_is: str) -> dict[str, Json]:
    """Return the JSON object in a file that an agent wrote; errors begin with `it_is`."""
    if len(data) > limit:
        raise BadRecord(f"{it_is} larger than {limit} bytes")
    text = data.decode("utf-8", "replace")
    try:
        value: Json = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{it_is} not JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise BadRecord(f"{it_is} not an object")
    if type(value.get("schema")) is not int or value["schema"] != SCHEMA:
        raise BadRecord(f"'schema' is not {SCHEMA}")
    return value


def _distinct(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return the object; raise if a key appears twice, because readers treat that differently."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a number")


# Types are inspected once, not for every event of a journal.

_known_fields: dict[type, dict[str, Field[object]]] = {}
_known_readers: dict[type, dict[str, tuple[str, Reader]]] = {}


def _fields(kind: type) -> dict[str, Field[object]]:
    """Return the fields of a dataclass by their keys."""
    if kind not in _known_fields:
        assert is_dataclass(kind), kind
        _known_fields[kind] = {each.metadata.get(KEY, each.name): each for each in fields(kind)}
    return _known_fields[kind]


def _is_required(each: Field[object]) -> bool:
    return each.default is MISSING and each.default_factory is MISSING


def _readers(kind: type) -> dict[str, tuple[str, Reader]]:
    """Return, by key, the name of each field and the reader of its value."""
    if kind not in _known_readers:
        hints, known = typing.get_type_hints(kind), _fields(kind).items()
        found = {key: (each.name, _reader(hints[each.name], repr(key))) for key, each in known}
        _known_readers[kind] = found
    return _known_readers[kind]


def _reader(kind: object, what: str) -> Reader:
    origin = typing.get_origin(kind)
    if origin is types.UnionType or origin is typing.Union:
        inner = _reader(next(x for x in typing.get_args(kind) if x is not type(None)), what)
        return lambda value: None if value is None else inner(value)
    if origin is tuple:
        return _tuple_reader(typing.get_args(kind), what)
    assert isinstance(kind, type), kind
    if is_dataclass(kind):
        return lambda value: from_json(kind, value, what)
    return _enum_reader(kind, what) if issubclass(kind, StrEnum) else _scalar_reader(kind, what)


def _tuple_reader(kinds: tuple[object, ...], what: str) -> Reader:
    count = 0 if kinds[1] is Ellipsis else len(kinds)
    readers = [_reader(each, f"an entry of {what}") for each in kinds if each is not Ellipsis]

    def read(value: Json) -> object:
        if not isinstance(value, list):
            raise BadRecord(f"{what} is not a list")
        if count and len(value) != count:
            raise BadRecord(f"{what} has {len(value)} entries, not {count}")
        each = readers if count else readers * len(value)
        return tuple(read(entry) for read, entry in zip(each, value, strict=True))

    return read


def _enum_reader(kind: type[StrEnum], what: str) -> Reader:
    def read(value: Json) -> object:
        try:
            return kind(str(value))
        except ValueError:
            raise BadRecord(f"{what} is {str(value)[:60]!r}, not {' or '.join(kind)}") from None

    return read


def _scalar_reader(kind: type, what: str) -> Reader:
    def read(value: Json) -> object:
        if type(value) is kind:
            return value
        if kind is float and type(value) is int:
            return float(value)
        raise BadRecord(f"{what} is {type(value).__name__}, not {kind.__name__}")

    return read
