"""`StrEnum` without the module enum, whose import takes a third of the time to start Python."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from enum import StrEnum
else:

    class _Words(type):
        """The class of a set of words: makes each word an instance of it."""

        def __init__(cls, name: str, bases: tuple[type, ...], names: dict[str, object]) -> None:
            super().__init__(name, bases, names)
            cls.__members__ = {}
            for key, text in names.items():
                if isinstance(text, str) and not key.startswith("_"):
                    word = str.__new__(cls, text)
                    setattr(cls, key, word)
                    cls.__members__[key] = word

        def __call__(cls, text: str) -> object:
            for word in cls:
                if word == text:
                    return word
            raise ValueError(f"{text!r} is not a valid {cls.__name__}")

        def __iter__(cls) -> Iterator[object]:
            return iter(cls.__members__.values())

    class StrEnum(str, metaclass=_Words):
        """Words that are strings; `Words("text")` returns the word and iterating all of them."""

        __slots__ = ()


__all__ = ["StrEnum"]
