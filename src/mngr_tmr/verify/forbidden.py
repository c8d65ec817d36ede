"""Refuse changes before anything runs, such as changes to how tests are run."""

from __future__ import annotations

import ast
import configparser
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from mngr.api import Repo, is_ancestor
from mngr_tmr.run.settings import ProjectSettings
from mngr_tmr.verify import patches
from mngr_tmr.verify.assertions import parsed
from mngr_tmr.verify.cases import Refusal

SIZE_LIMIT = 1 << 20
PROGRAMS = frozenset(
    ("sh", "bash", "dash", "env", "git", "python", "python3", "pytest", "timeout", "tmux")
)
OURS = ("pytest", "mngr_e2e", "mngr_tmr")
SECTIONS = {"tox.ini": "pytest", "setup.cfg": "tool:pytest"}
PLUGINS = ("mngr_tmr_probe", "mngr_tmr_touch", "mngr_tmr_lines", "mngr_tmr_mutate")
LOADED = frozenset(("pytest", "_pytest", "pluggy", "mngr_e2e", "mechanic_trace", *PLUGINS))
"""Modules that run tests. Python looks for them in the checkout and its src first."""
ENTRY_TABLES = (
    *(("project", "entry-points"), ("project", "scripts"), ("project", "gui-scripts")),
    *(("tool", "poetry", "plugins"), ("tool", "poetry", "scripts")),
)
ENTRY_KEYWORDS = ("entry_points", "scripts")
"""Arguments of setup() in a setup.py."""

Installed = Callable[[], frozenset[str]]
"""Returns the top-level modules that are installed where the tests run."""


def refuse_forbidden(
    repo: Repo, project: ProjectSettings, base: str, head: str, installed: Installed
) -> None:
    if not is_ancestor(repo, base, head):
        raise Refusal("its commits are not based on the commit that it started from")
    found = patches.changes(repo, base, head)
    forbidden = [each.path for each in found if project.is_forbidden(each.path)]
    if forbidden:
        raise Refusal(f"changes forbidden paths: {', '.join(forbidden[:5])}")
    for each in found:
        old, new = (patches.show(repo, commit, each.path) for commit in (base, head))
        why = changed_judge(each.path, old, new, installed)
        if why:
            raise Refusal(why)
        if old is None and PurePosixPath(each.path).name in PROGRAMS:
            raise Refusal(f"replaces a program: {each.path}")
    odd = [each.path for each in found if patches.odd(each)]
    if odd:
        raise Refusal(f"adds links or submodules: {', '.join(odd[:5])}")
    for each in found:
        gone = each.new_mode == patches.GONE
        if not gone and int(repo.line("cat-file", "-s", each.new_blob)) > SIZE_LIMIT:
            raise Refusal(f"adds a file larger than 1 MiB: {each.path}")


def changed_judge(path: str, old: str | None, new: str | None, installed: Installed) -> str:
    """Return why this change affects how tests are run; "" if it does not."""
    name = PurePosixPath(path).name
    if name == "pyproject.toml" and _tables(old) != _tables(new):
        return f"changes how pytest runs tests: {path}"
    if name in SECTIONS and _section(old, SECTIONS[name]) != _section(new, SECTIONS[name]):
        return f"changes how pytest runs tests: {path}"
    if _entries(name, old) != _entries(name, new):
        return f"changes entry points of plugins or programs: {path}"
    if old is None and (_module(path) in LOADED or _shadows(path, installed)):
        return f"adds a module that shadows {_module(path)}: {path}"
    return ""


def _shadows(path: str, installed: Installed) -> bool:
    """Return whether Python finds this new module before an installed one of its name."""
    parts = _below_src(path)
    is_module = len(parts) == 1 and parts[0].rpartition(".")[2] in ("py", "pyc", "so", "pyd")
    is_package = len(parts) == 2 and parts[1].startswith("__init__.")
    if not is_module and not is_package:
        return False
    name = _module(path)
    return name in sys.stdlib_module_names or name in installed()


def _entries(name: str, text: str | None) -> object:
    """Return the entry points that a file defines; all of a file that cannot be parsed."""
    if name == "pyproject.toml":
        data = _toml(text)
        return [_dig(data, keys) for keys in ENTRY_TABLES] if data is not None else text
    if name == "setup.cfg":
        return _section(text, "options.entry_points")
    if name == "entry_points.txt":
        return text
    return _keywords(text or "") if name == "setup.py" else None


def _keywords(text: str) -> object:
    tree = parsed(text)
    return (
        text
        if tree is None
        else [
            ast.dump(word.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            for word in node.keywords
            if word.arg in ENTRY_KEYWORDS
        ]
    )


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
    """Return the tables that decide how tests run; all of a file that cannot be parsed."""
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
    """Return the name of the module that Python would find there."""
    return _below_src(path)[0].partition(".")[0]
