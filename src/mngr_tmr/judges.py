"""Files by which a project says how its tests are run: who is judged does not write them. Pure."""

from __future__ import annotations

import configparser
import tomllib
from pathlib import PurePosixPath

OURS = ("pytest", "mngr_e2e", "mngr_tmr")
SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}
LOADED = frozenset(("pytest", "_pytest", "pluggy", "mngr_e2e", "mngr_tmr_probe", "mngr_tmr_touch"))
"""Modules that judge. Checks have the top of the checkout and its src on Python's path."""


def changed_judge(path: str, old: str | None, new: str | None) -> str:
    """Why this change is one of how tests are run; nothing where it is not."""
    name = PurePosixPath(path).name
    if name == "pyproject.toml" and _tables(old) != _tables(new):
        return f"changes how pytest runs tests: {path}"
    if name in SECTIONS and _section(old, SECTIONS[name]) != _section(new, SECTIONS[name]):
        return f"changes how pytest runs tests: {path}"
    if old is None and _module(path) in LOADED:
        return f"puts something in the place of {_module(path)}: {path}"
    return ""


def _tables(text: str | None) -> object:
    """Of what cannot be read, everything counts."""
    try:
        tool = tomllib.loads(text or "").get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return {key: tool[key] for key in OURS if key in tool} if isinstance(tool, dict) else text


def _section(text: str | None, name: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text or "")
    except configparser.Error:
        return text
    return dict(parser[name]) if parser.has_section(name) else {}


def _module(path: str) -> str:
    """The module that Python would find there before any other of that name."""
    parts = PurePosixPath(path).parts
    parts = parts[1:] if parts[0] == "src" and len(parts) > 1 else parts
    return parts[0].partition(".")[0]
