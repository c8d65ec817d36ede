"""Split a shell command into words, each character with its position in the command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

EXPANSION = "\0"
"""Replaces a variable or the output of a command, whose value is unknown."""

_EXPANDED = r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$(?:\w+|\{\w+\}|[?#@*!$-])"
# A quote without an end is an apostrophe.
_PART = re.compile(
    rf"""(?P<blank>[ \t\r]+|\\\n)|(?P<operator>[;&|<>()\n])|\$'(?P<ansi>(?:\\.|[^'\\])*)'"""
    rf"""|'(?P<single>[^']*)'|"(?P<double>(?:\\.|[^"\\])*)"|(?P<expanded>{_EXPANDED})"""
    r"""|\\(?P<escaped>.)|(?P<bare>.)""",
    re.DOTALL,
)
_INNER = {
    "single": re.compile(r"(?P<bare>.)", re.DOTALL),
    "ansi": re.compile(r"\\(?P<escaped>.)|(?P<bare>.)", re.DOTALL),
    "double": re.compile(
        rf'\\(?P<escaped>[$`"\\])|(?P<expanded>{_EXPANDED})|(?P<bare>.)', re.DOTALL
    ),
}


class Char(NamedTuple):
    """A character of a word, and its range in the command."""

    text: str
    start: int
    end: int


class ShellWord(NamedTuple):
    """An argument of a program; an operator of the shell is a word without characters."""

    chars: list[Char]
    end: int

    @property
    def text(self) -> str:
        return "".join(char.text for char in self.chars)


def words(command: str) -> Iterator[ShellWord]:
    chars: list[Char] = []
    end = 0
    for part in _PART.finditer(command):
        kind = str(part.lastgroup)
        if kind in ("blank", "operator"):
            yield from [ShellWord(chars, end)] if chars else []
            yield from [ShellWord([], part.end())] if kind == "operator" else []
            chars = []
        elif kind in _INNER:
            inner = _INNER[kind].finditer(command, *part.span(kind))
            chars += [_char(each) for each in inner]
        else:
            chars.append(_char(part))
        end = part.end()
    yield from [ShellWord(chars, end)] if chars else []


def _char(part: re.Match[str]) -> Char:
    kind = str(part.lastgroup)
    return Char(EXPANSION if kind == "expanded" else part[kind], part.start(), part.end())
