"""The project: its interpreter, its files, and copies of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Optional

LEFT_OUT = frozenset(
    {".git", ".mngr-e2e", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".tox"}
)
LINKED = frozenset({".venv", "venv", "node_modules"})
WORD = re.compile(r"\w+")
TEST_FOLDERS = ("tests", "test")
SETTINGS = {
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
"""pytest's files with settings, and the section in each."""


class NoPytest(Exception):
    """None of the interpreters has pytest."""


def interpreter(root: str, given: str) -> str:
    """Return the Python that runs the project's tests: the given one, if it has pytest."""
    tried = []
    for python in [given, *_interpreters(root)] if given else _interpreters(root):
        done = _run([python, "-c", "import pytest, sys; print(sys.executable)"], root)
        if done is not None:
            return done.splitlines()[-1]
        tried.append(python)
    raise NoPytest(f"no Python with pytest: tried {', '.join(dict.fromkeys(tried))}")


def is_newer(python: str) -> bool:
    """Return whether this Python is newer than the one running this program."""
    done = _run([python, "-c", "import sys; print(*sys.version_info[:2])"], os.sep)
    found = [int(part) for part in (done or "0 0").split()]
    return tuple(found) > sys.version_info[:2]


def _interpreters(root: str) -> list[str]:
    # A linked worktree has no .venv, but its main checkout may.
    common = os.path.join(root, _run(["git", "rev-parse", "--git-common-dir"], root) or ".git")
    roots = dict.fromkeys((root, os.path.dirname(os.path.abspath(common))))
    venvs = [os.path.join(each, name) for each in roots for name in (".venv", "venv")]
    places = [os.path.join(venv, "bin", "python") for venv in venvs]
    found = [place for place in places if os.path.exists(place)]
    if not found and os.path.exists(os.path.join(root, "uv.lock")) and shutil.which("uv"):
        made = _run(["uv", "run", "python", "-c", "import sys; print(sys.executable)"], root, 300)
        found += [made] if made else []
    names = (shutil.which("python3"), shutil.which("python"), sys.executable)
    return [*found, *(name for name in names if name)]


def _run(argv: list[str], cwd: str, seconds: float = 60) -> Optional[str]:
    try:
        done = subprocess.run(
            argv, cwd=cwd, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def copy(root: str, place: str) -> None:
    """Copy everything but history and caches; link large files that are never edited."""
    os.makedirs(place)
    for name in sorted(os.listdir(root)):
        path, target = os.path.join(root, name), os.path.join(place, name)
        if name in LEFT_OUT:
            continue
        if name in LINKED:
            os.symlink(path, target)
        elif os.path.islink(path) or os.path.isfile(path):
            shutil.copy2(path, target, follow_symlinks=False)
        elif os.path.isdir(path):
            shutil.copytree(path, target, symlinks=True, ignore=_left_out)


def _left_out(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name in LEFT_OUT or name in LINKED]


def import_roots(place: str) -> list[str]:
    """Return the folders of the project's packages, so that no installed copy is used."""
    source = os.path.join(place, "src")
    if os.path.isdir(source):
        return [source]
    packages = [
        name
        for name in os.listdir(place)
        if os.path.exists(os.path.join(place, name, "__init__.py")) and name not in TEST_FOLDERS
    ]
    return [place] if packages else []


def own_settings(root: str, test: str) -> str:
    """Return the pytest settings of the test's package; "" if it has none below the root."""
    folder = os.path.dirname(test)
    while folder:
        for name, mark in SETTINGS.items():
            path = os.path.join(folder, name)
            if os.path.isfile(os.path.join(root, path)):
                with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                    if mark in file.read():
                        return path
        folder = os.path.dirname(folder)
    return ""


def is_test(path: str) -> bool:
    """Return whether a file belongs to the tests, which a fix never changes."""
    *folders, name = path.split("/")
    named = name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py"
    return named or any(part in TEST_FOLDERS for part in folders)


def test_places(root: str) -> list[str]:
    """Return relative paths of test folders, and of test files outside them."""
    found = []
    for folder, folders, files in _walk(root):
        names = [name for name in folders if name in TEST_FOLDERS]
        folders[:] = [name for name in folders if name not in TEST_FOLDERS]
        names += [name for name in files if name.endswith(".py") and is_test(name)]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found


def _walk(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in LEFT_OUT and name not in LINKED]
        yield folder, folders, files


def documented_words(root: str) -> set[str]:
    """Return the words of documents, scripts and tests."""
    found: set[str] = set()
    for folder, _, files in _walk(root):
        for name in files:
            path = os.path.join(folder, name)
            wanted = name.endswith((".md", ".rst", ".txt", ".sh"))
            wanted = wanted or (name.endswith(".py") and is_test(os.path.relpath(path, root)))
            if wanted and os.path.getsize(path) < 300_000:
                with open(path, encoding="utf-8", errors="replace") as file:
                    found |= set(WORD.findall(file.read()))
    return found


def idle_cores() -> int:
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return max(1, min(4, cores, round(cores - os.getloadavg()[0])))
