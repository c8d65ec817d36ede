"""The tutorial blocks that a test cites, and the calls in which it runs commands."""

from __future__ import annotations

import ast
from typing import Optional, Union

from mngr_e2e.blocks import cited, commands

__all__ = ["Function", "block", "commands", "function", "runs"]
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def function(tree: ast.Module, node_id: str) -> Optional[Function]:
    """Return the definition of a test, which may be in a class."""
    names = [part.partition("[")[0] for part in node_id.split("::")[1:]]
    body: list[ast.stmt] = tree.body
    found: Optional[ast.stmt] = None
    for name in names:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = next((each for each in body if isinstance(each, kinds) and each.name == name), None)
        body = getattr(found, "body", [])
    return found if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def block(test: Function) -> str:
    """Return the cited blocks with an empty line between them; "" if the test cites none."""
    return "\n\n".join(text for _, text in cited(test) if text)


def runs(test: Function) -> dict[int, ast.Call]:
    """Return the calls of `….run(…)`, by each of their lines."""
    found: dict[int, ast.Call] = {}
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run":
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, node)
    return found
