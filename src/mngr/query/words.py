"""Split a filter expression into words: names, numbers, text and operators."""

from __future__ import annotations

import re

from mngr.model.struct import Struct

MAX_LENGTH = 100_000  # a list of 2,000 ids fits

_WORDS = r"""
    (?P<space>  [\t\n\f\r ]+ )
  | (?P<number> [0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)? )
  | (?P<text>   r\"[^\"\n]*\" | r'[^'\n]*' | \"(?:\\.|[^\"\\\n])*\" | '(?:\\.|[^'\\\n])*' )
  | (?P<name>   [A-Za-z_][A-Za-z0-9_]* )
  | (?P<op>     && | \|\| | [=!<>]= | [-+!<>.,()\[\]] )
"""
_ESCAPE = r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))"
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "'": "'"}


class BadExpression(Exception):
    """A fault in an expression, or in its value for a row; `at` is the character, or -1."""

    def __init__(self, message: str, at: int = -1, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint


class Word(Struct):
    """A word; its kind is number, text, name, op or end."""

    kind: str
    text: str
    at: int


def split(expression: str) -> list[Word]:
    """Return every word of an expression, followed by an `end`."""
    if len(expression) > MAX_LENGTH:
        raise BadExpression(f"expression longer than {MAX_LENGTH:,} characters")
    match = re.compile(_WORDS, re.VERBOSE).match
    words: list[Word] = []
    at = 0
    while at < len(expression):
        found = match(expression, at)
        if found is None:
            raise _stray(expression, at)
        kind = found.lastgroup or ""
        if kind == "number" and re.match("[A-Za-z0-9_.]", expression[found.end() :][:1]):
            raise BadExpression("invalid number", at)
        if kind != "space":
            words.append(Word(kind=kind, text=found.group(), at=at))
        at = found.end()
    return [*words, Word(kind="end", text="", at=at)]


def _stray(expression: str, at: int) -> BadExpression:
    char = expression[at]
    if char in "\"'":
        return BadExpression("missing closing quote", at)
    hints = {"=": "use == to compare", "&": "use && for and", "|": "use || for or"}
    return BadExpression(f"unexpected {char!r}", at, hints.get(char, ""))


def number(word: Word) -> int | float:
    """Return the value of a number, which fits into 64 bits."""
    whole = word.text.isdigit() and len(word.text) < 20
    value = int(word.text) if whole else float(word.text)
    if abs(value) >= 2**63:
        raise BadExpression("number too large", word.at)
    return value


def text(word: Word) -> str:
    """Return the value of quoted text, with escapes resolved unless it is raw."""
    if word.text[0] == "r":
        return word.text[2:-1]
    try:
        value = re.sub(_ESCAPE, _unescape, word.text[1:-1])
        value.encode()  # half a surrogate pair is no character
    except (KeyError, UnicodeEncodeError):
        raise BadExpression("unknown escape in text", word.at, "double the backslash") from None
    return value


def _unescape(found: re.Match[str]) -> str:
    two, four, simple = found.groups()
    return _SIMPLE[simple] if simple is not None else chr(int(two or four, 16))
