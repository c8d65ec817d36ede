"""Read which test cites which block, from test files that are parsed and never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mngr.errors import UsageError
from mngr_e2e import blocks
from mngr_e2e.artifacts import Function, functions

CALL = "write_tutorial_block"


@dataclass(frozen=True)
class Citation:
    """A test and a block that it cites."""

    path: Path
    line: int
    """The first line of the block's text."""
    test: str
    """The function's dotted name, as in `TestNotes.test_add`."""
    block: str | None
    """None if it is not a plain string and cannot be compared."""


def read_citations(path: Path) -> list[Citation]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from None
    return [found for name, test in functions(tree) for found in _cited(path, name, test)]


def _cited(path: Path, name: str, test: Function) -> Iterator[Citation]:
    for line, text in [*_in_docstring(test), *_in_calls(test)]:
        if text is None:
            yield Citation(path, line, name, None)
        else:
            for block in blocks.parse(text):
                yield Citation(path, line + block.line - 1, name, block.text)


def _in_calls(test: Function) -> Iterator[tuple[int, str | None]]:
    for node in ast.walk(test):
        if not isinstance(node, ast.Call) or _called(node.func) != CALL:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        text = _plain(given[0]) if given else None
        yield given[0].lineno if given else node.lineno, text


def _called(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _plain(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _in_docstring(test: Function) -> Iterator[tuple[int, str]]:
    first = test.body[0]
    text = _plain(first.value) if isinstance(first, ast.Expr) else None
    for block in blocks.in_docstring(text or ""):
        yield first.lineno + block.line - 1, block.text
