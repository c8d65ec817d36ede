"""Reads an expression into a tree, by operator precedence."""

from __future__ import annotations

from mngr.filters.fields import shorten
from mngr.filters.syntax import (
    MAX_HEIGHT,
    BadExpression,
    Binary,
    Call,
    Choice,
    Has,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Name,
    Node,
    Select,
    Token,
    Unary,
    number,
    text,
    tokenize,
)

MACROS = ("all", "exists", "exists_one", "filter")
CONSTANTS: dict[str, object] = {"true": True, "false": False, "null": None}
LEVELS = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_WORD_HINTS = {"and": "use && for and", "or": "use || for or", "not": "use ! for not"}


def parse(expression: str) -> Node:
    """The tree of an expression; BadExpression says what is wrong and where."""
    parser = _Parser(tokenize(expression))
    tree = parser.expression()
    parser.expect("")
    return tree


def _above(*nodes: Node) -> int:
    """The height of a node over these; too high a tree would exhaust the stack later."""
    height = 1 + max((node.height for node in nodes), default=0)
    if height > MAX_HEIGHT:
        raise BadExpression("expression nested too deeply", nodes[-1].at)
    return height


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def next(self) -> Token:
        token = self.token
        self.position += 1
        return token

    def sees(self, *words: str) -> bool:
        # Quoted text keeps its quotes in a token, so it can never pass for an operator.
        return self.token.text in words

    def take(self, word: str) -> bool:
        if self.sees(word):
            self.position += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if self.sees(word):
            self.position += 1
            return
        raise self.unexpected(f"expected '{word}', found " if word else "unexpected ")

    def unexpected(self, prefix: str) -> BadExpression:
        found = self.token.text
        shown = shorten(repr(found)) if found else "the end"
        return BadExpression(prefix + shown, self.token.at, _WORD_HINTS.get(found, ""))

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_HEIGHT:
            raise BadExpression("expression nested too deeply", self.token.at)
        test = self.binary(1)
        if self.take("?"):
            yes = self.binary(1)
            self.expect(":")
            no = self.expression()
            test = Choice(at=test.at, height=_above(test, yes, no), test=test, yes=yes, no=no)
        self.depth -= 1
        return test

    def binary(self, least: int) -> Node:
        left = self.unary()
        while (level := LEVELS.get(self.token.text, 0)) >= least:
            op = self.token.text
            if op in ("&&", "||"):
                left = self.logic(op, left)
                continue
            at = self.next().at
            right = self.binary(level + 1)
            left = Binary(at=at, height=_above(left, right), op=op, left=left, right=right)
        return left

    def logic(self, op: str, first: Node) -> Node:
        parts = [first]
        while self.take(op):
            parts.append(self.binary(LEVELS[op] + 1))
        return Logic(at=first.at, height=_above(*parts), op=op, parts=tuple(parts))

    def unary(self) -> Node:
        ops = []
        while self.sees("!", "-"):
            ops.append(self.next())
        node = self.member()
        for op in reversed(ops):
            if op.text == "-" and isinstance(node, Literal) and type(node.value) in (int, float):
                node = node.replace(at=op.at, value=-node.value)  # type: ignore[operator]
            else:
                node = Unary(at=op.at, height=_above(node), op=op.text, of=node)
        return node

    def member(self) -> Node:
        node = self.primary()
        while self.sees(".", "["):
            if self.next().text == "[":
                key = self.expression()
                self.expect("]")
                node = Index(at=node.at, height=_above(node, key), of=node, key=key)
            else:
                node = self.dotted(node)
        return node

    def dotted(self, of: Node) -> Node:
        if self.token.kind != "word":
            raise self.unexpected("expected a name after '.', found ")
        at = self.token.at
        name = self.next().text
        if not self.take("("):
            return Select(at=at, height=_above(of), of=of, name=name)
        args = self.several(")")
        if name in MACROS:
            return self.macro(name, at, of, args)
        return Call(at=at, height=_above(of, *args), name=name, args=(of, *args))

    def macro(self, name: str, at: int, over: Node, args: tuple[Node, ...]) -> Node:
        if len(args) != 2 or not isinstance(args[0], Name):
            hint = f"for example labels.{name}(key, key != 'x')"
            raise BadExpression(f"{name}() takes a new name and an expression", at, hint)
        return Macro(
            at=at,
            height=_above(over, args[1]),
            name=name,
            over=over,
            variable=args[0].name,
            body=args[1],
        )

    def primary(self) -> Node:
        token = self.token
        if token.kind == "number":
            return Literal(at=self.next().at, value=number(token))
        if token.kind == "text":
            return Literal(at=self.next().at, value=text(token))
        if token.kind == "word" and token.text != "in":
            return self.word()
        if self.take("("):
            inner = self.expression()
            self.expect(")")
            return inner
        if self.take("["):
            items = self.several("]")
            return ListOf(at=token.at, height=_above(*items), items=items)
        if self.take("{"):
            return self.map(token.at)
        raise self.unexpected("expected a value, found ")

    def word(self) -> Node:
        token = self.next()
        if token.text in CONSTANTS:
            return Literal(at=token.at, value=CONSTANTS[token.text])
        if not self.take("("):
            return Name(at=token.at, name=token.text)
        args = self.several(")")
        if token.text != "has":
            return Call(at=token.at, height=_above(*args), name=token.text, args=args)
        if len(args) != 1 or not isinstance(args[0], (Name, Select, Index)):
            raise BadExpression("has() takes one field", token.at, "for example has(labels.team)")
        return Has(at=token.at, height=_above(*args), of=args[0])

    def several(self, closing: str) -> tuple[Node, ...]:
        """Expressions up to `closing`; a comma after the last is fine."""
        items: list[Node] = []
        while not self.take(closing):
            items.append(self.expression())
            if not self.take(","):
                self.expect(closing)
                break
        return tuple(items)

    def map(self, at: int) -> Node:
        pairs: list[tuple[Node, Node]] = []
        while not self.take("}"):
            key = self.expression()
            self.expect(":")
            pairs.append((key, self.expression()))
            if not self.take(","):
                self.expect("}")
                break
        height = _above(*(node for pair in pairs for node in pair))
        return MapOf(at=at, height=height, pairs=tuple(pairs))
