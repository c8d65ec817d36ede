"""The tree a filter expression is read into, and how its words are found."""

from __future__ import annotations

import re

from mngr.struct import Struct

MAX_LENGTH = 100_000  # a list of 2,000 ids fits
MAX_HEIGHT = 64  # Python's own stack must hold the parser, the checker and the caller


class BadExpression(Exception):
    """Why an expression cannot be used; `at` is the offending character, or -1."""

    def __init__(self, message: str, at: int = -1, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.hint = hint


class Node(Struct):
    """A part of an expression: where it starts, and how many levels it and its parts span."""

    at: int
    height: int = 1


class Literal(Node):
    value: object


class Name(Node):
    name: str


class Select(Node):
    of: Node
    name: str


class Index(Node):
    of: Node
    key: Node


class Has(Node):
    of: Node


class Call(Node):
    name: str
    args: tuple[Node, ...]


class Macro(Node):
    name: str
    over: Node
    variable: str
    body: Node


class Unary(Node):
    op: str
    of: Node


class Binary(Node):
    op: str
    left: Node
    right: Node


class Logic(Node):
    """`&&` or `||` over any number of parts: a long chain must not be a deep tree."""

    op: str
    parts: tuple[Node, ...]


class Choice(Node):
    test: Node
    yes: Node
    no: Node


class ListOf(Node):
    items: tuple[Node, ...]


class MapOf(Node):
    pairs: tuple[tuple[Node, Node], ...]


def dotted(node: Node) -> str:
    """`host.name` as it is written; what is not a plain name shows as `…`."""
    match node:
        case Name(name=name):
            return name
        case Select(of=of, name=name) | Index(of=of, key=Literal(value=str(name))):
            return f"{dotted(of)}.{name}"
    return "…"


class Token(Struct):
    """A word: kind is number, text, word, op or end."""

    kind: str
    text: str
    at: int


_WORDS = r"""
    (?P<space>  [\t\n\f\r ]+ | //[^\n]* )
  | (?P<number> 0[xX][0-9a-fA-F]+[uU]?
              | [0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+
              | [0-9]+[uU]? )
  | (?P<text>   [rR](?:\"{3}[\s\S]*?\"{3} | '{3}[\s\S]*?'{3} | \"[^\"\n]*\" | '[^'\n]*')
              | \"{3}(?:\\[\s\S]|[^\\])*?\"{3} | '{3}(?:\\[\s\S]|[^\\])*?'{3}
              | \"(?:\\.|[^\"\\\n])*\" | '(?:\\.|[^'\\\n])*' )
  | (?P<word>   [A-Za-z_][A-Za-z0-9_]* )
  | (?P<op>     && | \|\| | [=!<>]= | [-+*/%!<>?:.,()\[\]{}] )
"""


def tokenize(expression: str) -> list[Token]:
    """Every word of an expression, an `end` last."""
    if len(expression) > MAX_LENGTH:
        raise BadExpression(f"expression longer than {MAX_LENGTH:,} characters")
    match = re.compile(_WORDS, re.VERBOSE).match
    tokens: list[Token] = []
    at = 0
    while at < len(expression):
        found = match(expression, at)
        if found is None:
            raise _stray(expression, at)
        kind = found.lastgroup or ""
        if kind == "number" and re.match("[A-Za-z0-9_]", expression[found.end() :][:1]):
            raise BadExpression("number runs into a word", at)
        if kind != "space":
            tokens.append(Token(kind=kind, text=found.group(), at=at))
        at = found.end()
    return [*tokens, Token(kind="end", text="", at=at)]


def _stray(expression: str, at: int) -> BadExpression:
    char = expression[at]
    if char in "\"'":
        return BadExpression("text without its closing quote", at)
    hints = {"=": "use == to compare", "&": "use && for and", "|": "use || for or"}
    return BadExpression(f"unexpected {char!r}", at, hints.get(char, ""))


def number(token: Token) -> int | float:
    """The value of a number; `u` for unsigned is accepted and means nothing here."""
    text = token.text.rstrip("uU")
    if text[:2] in ("0x", "0X"):
        value: int | float = int(text, 16)
    elif text.isdigit():
        value = int(text) if len(text) < 30 else 2**64
    else:
        value = float(text)
    # One past the signed range stays allowed, since `-9223372036854775808` is read as `-` and it.
    if value == float("inf") or (isinstance(value, int) and value >= 2**64):
        raise BadExpression("number too big", token.at)
    return value


_ESCAPE = r"\\(?:x(..)|u(.{4})|U(.{8})|([0-3][0-7]{2})|([\s\S]))"
_SIMPLE = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))


def text(token: Token) -> str:
    """The value of quoted text, escapes resolved unless it is raw."""
    raw = token.text[0] in "rR"
    body = token.text[1:] if raw else token.text
    quotes = 3 if len(body) >= 6 and body[:3] in ('"""', "'''") else 1
    body = body[quotes:-quotes]
    if raw or "\\" not in body:
        return body
    try:
        value = re.sub(_ESCAPE, _unescape, body)
        value.encode()  # half a surrogate pair is no character
    except (ValueError, OverflowError, KeyError):
        raise BadExpression("unknown escape in text", token.at, "double the backslash") from None
    return value


def _unescape(found: re.Match[str]) -> str:
    two, four, eight, octal, simple = found.groups()
    if simple is not None:
        return _SIMPLE[simple]
    if octal is not None:
        return chr(int(octal, 8))
    digits = str(two or four or eight)
    if not re.fullmatch("[0-9a-fA-F]+", digits):
        raise ValueError(digits)
    return chr(int(digits, 16))
