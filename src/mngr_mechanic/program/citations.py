"""The tutorial block that a test cites, and the commands that the test runs."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Optional, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
IN_DOCSTRING = re.compile(r"Tutorial block:\s*\n(.*?)(?:\n\s*\n\s*Scope:|\Z)", re.DOTALL)


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
    """Return the cited block without indentation; "" if the test cites none."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "write_tutorial_block":
            for arg in node.args:
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                    return _dedented(arg.value)
    found = IN_DOCSTRING.search(ast.get_docstring(test, clean=True) or "")
    return _dedented(found.group(1)) if found else ""


def _dedented(text: str) -> str:
    lines = textwrap.dedent(text).strip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def commands(text: str) -> list[str]:
    """Return the lines of a block except comments; continued lines are joined."""
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.split("\n") if line.strip() and line.strip()[0] != "#"]


def runs(test: Function) -> dict[int, ast.Call]:
    """Return the calls of `….run(…)`, by each of their lines."""
    found: dict[int, ast.Call] = {}
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run":
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, node)
    return found
