"""Files by which a project says how its tests are run: who is judged does not write them."""

from __future__ import annotations

import ast
import configparser
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

OURS = ("pytest", "mngr_e2e", "mngr_tmr")
SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}
PLUGINS = ("mngr_tmr_probe", "mngr_tmr_touch", "mngr_tmr_lines", "mngr_tmr_mutate")
LOADED = frozenset(("pytest", "_pytest", "pluggy", "mngr_e2e", "mechanic_trace", *PLUGINS))
"""Modules that judge. Checks have the top of the checkout and its src on Python's path."""
ENTRY_TABLES = (
    *(("project", "entry-points"), ("project", "scripts"), ("project", "gui-scripts")),
    *(("tool", "poetry", "plugins"), ("tool", "poetry", "scripts")),
)
ENTRY_KEYWORDS = ("entry_points", "scripts")
"""Of setup() in a setup.py."""

installed: Callable[[], frozenset[str]] = frozenset
"""Top-level modules that are installed where the tests run; the bench of a run can tell."""


def changed_judge(path: str, old: str | None, new: str | None) -> str:
    """Why this change is one of how tests are run; nothing where it is not."""
    name = PurePosixPath(path).name
    if name == "pyproject.toml" and _tables(old) != _tables(new):
        return f"changes how pytest runs tests: {path}"
    if name in SECTIONS and _section(old, SECTIONS[name]) != _section(new, SECTIONS[name]):
        return f"changes how pytest runs tests: {path}"
    if _entries(name, old) != _entries(name, new):
        return f"changes entry points, by which plugins and programs are found: {path}"
    if old is None and (_module(path) in LOADED or _shadows(path)):
        return f"puts something in the place of {_module(path)}: {path}"
    return ""


def _shadows(path: str) -> bool:
    """A new module or package by the name of one that is installed, where Python looks first."""
    parts = _below_src(path)
    is_module = len(parts) == 1 and parts[0].rpartition(".")[2] in ("py", "pyc", "so", "pyd")
    is_package = len(parts) == 2 and parts[1].startswith("__init__.")
    if not is_module and not is_package:
        return False
    name = _module(path)
    return name in sys.stdlib_module_names or name in installed()


def _entries(name: str, text: str | None) -> object:
    """What a file says about entry points; of what cannot be read, everything."""
    if name == "pyproject.toml":
        data = _toml(text)
        return [_dig(data, keys) for keys in ENTRY_TABLES] if data is not None else text
    if name == "setup.cfg":
        return _section(text, "options.entry_points")
    if name == "entry_points.txt":
        return text
    return _keywords(text or "") if name == "setup.py" else None


def _keywords(text: str) -> object:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return text
    return [
        ast.dump(word.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in ENTRY_KEYWORDS
    ]


def _toml(text: str | None) -> Mapping[str, object] | None:
    try:
        return tomllib.loads(text or "")
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _dig(data: object, keys: tuple[str, ...]) -> object:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _tables(text: str | None) -> object:
    """Of what cannot be read, everything counts."""
    data = _toml(text)
    tool = data.get("tool", {}) if data is not None else None
    return {key: tool[key] for key in OURS if key in tool} if isinstance(tool, dict) else text


def _section(text: str | None, name: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text or "")
    except configparser.Error:
        return text
    return dict(parser[name]) if parser.has_section(name) else {}


def _below_src(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    return parts[1:] if parts[0] == "src" and len(parts) > 1 else parts


def _module(path: str) -> str:
    """The module that Python would find there before any other of that name."""
    return _below_src(path)[0].partition(".")[0]
