"""Which test cites which block: read from the test files, which are parsed and never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mngr.errors import UsageError
from mngr_e2e import blocks

CALL = "write_tutorial_block"
MARK = "Tutorial block:"
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Citation:
    path: Path
    line: int
    """Where the block's text begins."""
    test: str
    """The function's dotted name, as in `TestNotes.test_add`."""
    block: str | None
    """None when it is not plain text, and cannot be compared."""


def read_citations(path: Path) -> list[Citation]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from None
    return [found for name, test in _functions(tree, "") for found in _cited(path, name, test)]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, _Function):
            yield prefix + child.name, child
        else:
            yield from _functions(child, prefix)


def _cited(path: Path, name: str, test: _Function) -> Iterator[Citation]:
    for line, text in [*_in_docstring(test), *_in_calls(test)]:
        if text is None:
            yield Citation(path, line, name, None)
        else:
            for block in blocks.parse(text):
                yield Citation(path, line + block.line - 1, name, block.text)


def _in_calls(test: _Function) -> Iterator[tuple[int, str | None]]:
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


def _in_docstring(test: _Function) -> Iterator[tuple[int, str]]:
    """The paragraph after the mark: a block has no empty lines, so that is where it ends."""
    first = test.body[0]
    text = _plain(first.value) if isinstance(first, ast.Expr) else None
    lines = (text or "").split("\n")
    for number, line in enumerate(lines):
        if line.strip() == MARK:
            after = "\n".join(lines[number + 1 :])
            found = blocks.parse(after)[:1]
            yield from ((first.lineno + number + 1 + each.line - 1, each.text) for each in found)
