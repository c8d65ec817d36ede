"""One file of the project: its text, its tree, and the places of its nodes."""

from __future__ import annotations

import ast
import bisect
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Edit:
    """A small change of a text."""

    path: str
    start: int
    """Character offsets."""
    end: int
    new: str
    kind: str
    prior: float
    """How likely this kind of edit is correct, without regard to its place."""
    line: int
    hinted: bool = False
    """Whether the failure suggests it, so that its place matters less."""

    def applied(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True)
class Token:
    type: int
    text: str
    start: int
    end: int


class SourceFile:
    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.tree = ast.parse(text)
        # Lines as Python counts them: str.splitlines knows seven more separators.
        self.lines = re.findall(r"[^\n]*\n|[^\n]+", text)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))
        self.tokens = list(self._tokens())
        self._token_starts = [token.start for token in self.tokens]
        self.dump = ast.dump(self.tree)
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes = list(ast.walk(self.tree))
        for node in self.nodes:
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self._inside: dict[ast.AST, list[ast.AST]] = {}

    def inside(self, node: ast.AST) -> list[ast.AST]:
        """Return all nodes of a function; cached."""
        if node not in self._inside:
            self._inside[node] = list(ast.walk(node))
        return self._inside[node]

    @cached_property
    def attributes(self) -> dict[str, list[str]]:
        """Return the attributes in the order of the file, by the text of their owner."""
        found: dict[str, list[str]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Attribute):
                found.setdefault(ast.unparse(node.value), []).append(node.attr)
        return found

    @cached_property
    def fields(self) -> list[str]:
        """Return the annotated names, mostly of dataclasses."""
        return [
            node.target.id
            for node in self.nodes
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        ]

    # places

    def _tokens(self) -> Iterator[Token]:
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            start = self._starts[token.start[0] - 1] + token.start[1]
            end = self._starts[min(token.end[0] - 1, len(self._starts) - 1)] + token.end[1]
            yield Token(token.type, token.string, start, end)

    def _offset(self, line: int, column: int) -> int:
        """Return an offset in characters; the tree counts columns in bytes."""
        text = self.lines[line - 1]
        if text.isascii():
            return self._starts[line - 1] + column
        return self._starts[line - 1] + len(text.encode()[:column].decode("utf-8", "replace"))

    def span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self._offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def segment(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def trusted(self, node: ast.AST) -> bool:
        """Return whether the node's position is right: older Pythons are wrong in f-strings."""
        if not isinstance(node, ast.expr):
            return True
        if isinstance(node, (ast.FormattedValue, ast.JoinedStr)):
            return False
        try:
            found = ast.parse(f"({self.segment(node)})", mode="eval").body
        except (SyntaxError, ValueError, IndexError):
            return False
        return ast.unparse(found) == ast.unparse(node)

    def in_fstring(self, node: ast.AST) -> bool:
        at = self.parents.get(node)
        while at is not None and isinstance(at, ast.expr):
            if isinstance(at, ast.JoinedStr):
                return True
            at = self.parents.get(at)
        return False

    def tokens_between(self, start: int, end: int) -> list[Token]:
        first = bisect.bisect_left(self._token_starts, start)
        last = bisect.bisect_left(self._token_starts, end)
        return [token for token in self.tokens[first:last] if token.end <= end]

    # statements

    def statement(self, node: ast.AST) -> ast.AST:
        at = node
        while not isinstance(at, (ast.stmt, ast.ExceptHandler)) and at in self.parents:
            at = self.parents[at]
        return at

    def statement_lines(self, statement: ast.AST) -> range:
        """Return the lines of a simple statement, or of the head of one with a body."""
        first = getattr(statement, "lineno", 1)
        body = getattr(statement, "body", None)
        if isinstance(body, list) and body:
            decorators = [each.lineno for each in getattr(statement, "decorator_list", [])]
            return range(min([first, *decorators]), max(first + 1, body[0].lineno))
        return range(first, (getattr(statement, "end_lineno", None) or first) + 1)

    def function(self, node: ast.AST) -> "ast.FunctionDef | ast.AsyncFunctionDef | None":
        at = self.parents.get(node)
        while at is not None and not isinstance(at, (ast.FunctionDef, ast.AsyncFunctionDef)):
            at = self.parents.get(at)
        return at

    def is_docstring(self, node: ast.AST) -> bool:
        return isinstance(self.parents.get(node), ast.Expr)

    def is_annotation(self, node: ast.AST) -> bool:
        """Return whether the node is part of a type, which never makes a test fail."""
        child, at = node, self.parents.get(node)
        while at is not None:
            if isinstance(at, ast.arg) or getattr(at, "returns", None) is child:
                return True
            if isinstance(at, ast.AnnAssign) and at.annotation is child:
                return True
            child, at = at, self.parents.get(at)
        return False


def parses(text: str) -> bool:
    try:
        compile(text, "<candidate>", "exec", ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError):
        return False
    return True
