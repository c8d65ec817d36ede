"""Immutable typed structs that read and write JSON.

The standard dataclasses take 10 ms to import and msgspec 30 ms, as long as starting Python three
times; this page of code takes almost none. Annotations are read as text, so a module that defines a
Struct must use `from __future__ import annotations`.

Supported annotations: str int float bool, `X | None`, `tuple[X, ...]`, `dict[str, X]`, other
Structs of the same module, and `Json` (anything).
"""

from __future__ import annotations

import sys

from mngr.errors import BadRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self, TypeAlias, dataclass_transform

    Json: TypeAlias = (
        None | bool | int | float | str | list["Json"] | tuple["Json", ...] | dict[str, "Json"]
    )
    Decoder: TypeAlias = Callable[[object], object]
else:
    Json = object

    def dataclass_transform(**_: object) -> object:
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Struct:
    """A struct whose fields are its annotations; those without a default are required."""

    _fields: dict[str, str] = {}
    _defaults: dict[str, object] = {}
    _mutable: tuple[str, ...] = ()
    """Fields whose default is a dict or a list; every struct gets a copy of it."""
    _decoders: list[tuple[str, Decoder]] = []

    def __init_subclass__(cls) -> None:
        names = cls.__dict__.get("__annotations__", {})
        cls._fields = {**cls._fields, **names}
        cls._defaults = {
            **cls._defaults,
            **{n: cls.__dict__[n] for n in names if n in cls.__dict__},
        }
        defaults = cls._defaults.items()
        cls._mutable = tuple(name for name, value in defaults if isinstance(value, (dict, list)))

    def __init__(self, **values: object) -> None:
        cls = type(self)
        made = {**cls._defaults, **values}
        if made.keys() != cls._fields.keys():
            missing, unknown = cls._fields.keys() - made.keys(), made.keys() - cls._fields.keys()
            raise TypeError(f"{cls.__name__}: missing {sorted(missing)}, unknown {sorted(unknown)}")
        for name in cls._mutable:
            if name not in values:
                made[name] = cls._fresh(name)
        self.__dict__.update(made)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__name__}({inside})"

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed. scripts/mypy_struct.py checks their types."""
        return self.updated(changes)

    def updated(self, changes: Mapping[str, object]) -> Self:
        """Return a copy with fields that are known only at run time; types are not checked."""
        return type(self)(**{**self.__dict__, **changes})

    def to_json(self) -> dict[str, Json]:
        """Return plain dicts, lists and scalars, in the order of the fields."""
        return {name: _plain(getattr(self, name)) for name in self._fields}

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Validate; unknown keys are ignored so that older programs read newer records."""
        given = _object(value)
        made = cls.__new__(cls)
        known = made.__dict__
        known.update(cls._defaults)
        for name in cls._mutable:
            known[name] = cls._fresh(name)
        name = ""
        try:
            for name, decode in cls._field_decoders():
                if name in given:
                    known[name] = decode(given[name])
        except BadRecord as error:
            raise BadRecord(f"{cls.__name__}.{name}: {error.message}") from None
        for name in cls._fields if len(known) < len(cls._fields) else ():
            if name not in known:
                raise BadRecord(f"{cls.__name__}.{name} is missing")
        return made

    @classmethod
    def _fresh(cls, name: str) -> object:
        default = cls._defaults[name]
        return default.copy() if isinstance(default, (dict, list)) else default

    @classmethod
    def _field_decoders(cls) -> list[tuple[str, Decoder]]:
        """Return the decoders, made at the first use because structs may name later ones."""
        if "_decoders" not in cls.__dict__:
            fields = cls._fields.items()
            cls._decoders = [(name, _decoder(text, cls.__module__)) for name, text in fields]
        return cls._decoders


def _plain(value: object) -> Json:
    if isinstance(value, Struct):
        return value.to_json()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"not JSON: {value!r}")


_decoders: dict[tuple[str, str], Decoder] = {}


def _decoder(annotation: str, module: str) -> Decoder:
    key = (annotation, module)
    if key not in _decoders:
        _decoders[key] = _make_decoder(annotation, module)
    return _decoders[key]


def _make_decoder(annotation: str, module: str) -> Decoder:
    if annotation in _SCALARS:
        return _scalar(annotation)
    if annotation == "Json":
        return lambda value: value
    if annotation.endswith(" | None"):
        inner = _decoder(annotation.removesuffix(" | None"), module)
        return lambda value: None if value is None else inner(value)
    if annotation.startswith("tuple["):
        item = _decoder(annotation.removeprefix("tuple[").removesuffix(", ...]"), module)
        return lambda value: tuple(item(each) for each in _list(value))
    if annotation.startswith("dict[str, "):
        item = _decoder(annotation.removeprefix("dict[str, ").removesuffix("]"), module)
        return lambda value: {k: item(v) for k, v in _object(value).items()}
    struct = getattr(sys.modules[module], annotation)
    assert issubclass(struct, Struct), annotation
    decoder: Decoder = struct.from_json
    return decoder


_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}


def _scalar(name: str) -> Decoder:
    types = _SCALARS[name]

    def decode(value: object) -> object:
        # Compare exact types: bool is an int in Python, but `true` is not a number in JSON.
        if type(value) not in types:
            raise BadRecord(f"expected {name}, found {type(value).__name__}")
        return value

    return decode


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise BadRecord(f"expected a list, found {type(value).__name__}")
    return value


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadRecord(f"expected an object, found {type(value).__name__}")
    return value
