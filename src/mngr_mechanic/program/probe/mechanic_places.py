"""Find the file of the project that is running: directly, through a link, or as a copy."""

from __future__ import annotations

import os

LEFT_OUT = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", ".mngr-e2e"})
LIMIT = 2_000_000

_known: dict[str, dict[str, str]] = {}
_names: dict[str, dict[str, list[str]]] = {}


def place(filename: str, root: str) -> str:
    """Return the path of a file in the project; "" for other files."""
    known = _known.setdefault(root, {})
    if filename not in known:
        known[filename] = _place(filename, root)
    return known[filename]


def _place(filename: str, root: str) -> str:
    if not filename or filename.startswith("<"):
        return ""
    for path, top in ((filename, root), (os.path.realpath(filename), os.path.realpath(root))):
        if path.startswith(top + os.sep):
            return path[len(top) + 1 :]
    return _copied(filename, root)


def _copied(filename: str, root: str) -> str:
    """Return the path of the project's file with the same name and content, or ""."""
    named = _index(root).get(os.path.basename(filename), [])
    content = _content(filename) if named else b""
    same = [path for path in named if content and _content(os.path.join(root, path)) == content]
    return same[0] if len(same) == 1 else ""


def _index(root: str) -> dict[str, list[str]]:
    if root not in _names:
        found: dict[str, list[str]] = {}
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
            for name in files:
                if name.endswith(".py"):
                    path = os.path.relpath(os.path.join(folder, name), root)
                    found.setdefault(name, []).append(path)
        _names[root] = found
    return _names[root]


def _content(path: str) -> bytes:
    try:
        if os.path.getsize(path) > LIMIT:
            return b""
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
