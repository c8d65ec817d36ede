"""The data of an exception: its frames, its message, and the values on the failing line."""

# pytest and the tests pass values of any type.
# mypy: disallow-any-explicit=false
# ruff: noqa: ANN401
from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Optional

LIMIT = 8_000


def failure(error: BaseException, test_file: str) -> dict[str, Any]:
    frames = _frames(error)
    mine = [frame for frame, line in frames if frame.f_code.co_filename == test_file]
    lines = [line for frame, line in frames if frame.f_code.co_filename == test_file]
    return {
        "type": type(error).__name__,
        "message": _text(error)[-LIMIT * 3 :],
        "frames": [[frame.f_code.co_filename, line] for frame, line in frames],
        "line": lines[-1] if lines else 0,
        "values": _values(mine[-1], lines[-1]) if mine else {},
    }


def _text(error: BaseException) -> str:
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception:  # its own __str__ may be the defect
        return ""


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the frames of the exception and of its causes, outermost first."""
    found: list[tuple[FrameType, int]] = []
    seen: set[int] = set()
    at: Optional[BaseException] = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        trace: Optional[TracebackType] = at.__traceback__
        part = []
        while trace is not None:
            part.append((trace.tb_frame, trace.tb_lineno))
            trace = trace.tb_next
        found = part + found if at is not error else part
        at = at.__cause__ or at.__context__
    return found


def _values(frame: FrameType, line: int) -> dict[str, Any]:
    """Return names and attributes on the failing line, and all results of commands."""
    found: dict[str, Any] = {}
    for text in sorted(_spoken(frame.f_code.co_filename, line)):
        value = _plain_of(_evaluated, text, frame)
        if value is not None:
            found[text] = value
    for name, held in list(frame.f_locals.items()):
        for part in ("stdout", "stderr", "out", "err"):
            value = _plain_of(getattr, held, part, None)
            if isinstance(value, str):
                found.setdefault(f"{name}.{part}", value)
    return found


def _spoken(path: str, line: int) -> set[str]:
    """Return the dotted names in the statement on that line."""
    source = "".join(linecache.getlines(path))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Expr, ast.Assert, ast.Assign, ast.Return))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    names = (each for node in around for each in ast.walk(node))
    return {text for each in names if (text := _dotted(each))}


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def _evaluated(text: str, frame: FrameType) -> object:
    """Return the value of a dotted name, without calls, which could change something."""
    first, *rest = text.split(".")
    value: object = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in rest:
        value = getattr(value, name, None)
    return value


def _plain_of(read: Callable[..., object], *given: object) -> Any:
    try:
        return _plain(read(*given))
    except Exception:  # properties and representations are code of the project
        return None


def _plain(value: object) -> Any:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()[:LIMIT]
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (list, tuple, dict, set)):
        return repr(value)[:LIMIT]
    return None
