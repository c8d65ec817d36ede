"""The kind of a path: implementation, test or document.

Files with tests, every conftest.py, helpers that only tests import and data that only tests name
are tests, regardless of the project's globs, because a change of these can make a test pass without
a fix.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from enum import StrEnum
from functools import cache, cached_property
from pathlib import PurePosixPath

from mngr.api import Repo
from mngr_tmr.run.settings import DOCUMENTS, TESTS, ProjectSettings, matches
from mngr_tmr.verify.patches import show

METADATA = ("pyproject.toml", "setup.py", "setup.cfg")
DEPTH = 4
"""Maximum number of files between a test and a file that it uses."""


class Kind(StrEnum):
    IMPLEMENTATION = "implementation"
    TEST = "test"
    DOCUMENT = "document"


class Parts:
    """The kinds of paths at the base of a run, cached: git runs once per path."""

    def __init__(
        self, repo: Repo, commit: str, project: ProjectSettings, collected: Collection[str]
    ) -> None:
        self._repo, self._commit, self._project = repo, commit, project
        self._collected = frozenset(collected)
        listed = repo.git("ls-tree", "-r", "-z", "--name-only", commit)
        self._files = frozenset(os.fsdecode(listed).split("\0")) - {""}
        self.kind = cache(self._kind)
        self.users = cache(self._users)
        self._words = cache(self._metadata)

    def _kind(self, path: str) -> Kind:
        if self._plainly_test(path) or self._of_tests_alone(path):
            return Kind.TEST
        return Kind.IMPLEMENTATION if self._project.is_implementation(path) else Kind.DOCUMENT

    def _plainly_test(self, path: str) -> bool:
        if path in self._collected or PurePosixPath(path).name == "conftest.py":
            return True
        named = any(matches(path, glob) for glob in TESTS)
        return named and not (
            self._project.implementation and self._project.is_implementation(path)
        )

    @property
    def has_python(self) -> bool:
        """Return whether there is any implementation in Python, for mutants."""
        python = (path for path in self._files if path.endswith(".py"))
        return any(self.kind(path) is Kind.IMPLEMENTATION for path in python)

    # what only tests use

    def _of_tests_alone(self, path: str) -> bool:
        users = self.users(path)
        if not all(self._plainly_test(each) for each in users):
            return False
        if not path.endswith(".py"):
            return bool(users)
        if path not in self._files or users:
            return self._among_tests(path) or (bool(users) and not self._shipped(path))
        return False

    def only_tests_use(self, path: str) -> bool:
        """Return whether only tests seem to use a file, which is no public module of a library."""
        users = self.users(path)
        return bool(users) and not _front(path) and all(map(self._plainly_test, users))

    def _among_tests(self, path: str) -> bool:
        """Return whether a file is in a folder with tests and no implementation."""
        folder = os.path.dirname(path)
        if self._is_flat or self._has_own_test(path):
            return False
        beside = [
            each
            for each in self._files
            if os.path.dirname(each) == folder and each.endswith(".py") and each != path
        ]
        rest = [each for each in beside if not each.endswith("__init__.py")]
        tests = [each for each in rest if self._plainly_test(each)]
        return bool(tests) and all(
            each in tests or all(map(self._plainly_test, self.users(each))) for each in rest
        )

    def may_be_a_helper(self, path: str) -> bool:
        """Return whether nothing shows that it is implementation and no helper of the tests."""
        users = self.users(path) if self._is_flat and not self._has_own_test(path) else ()
        return bool(users) and all(map(self._plainly_test, users))

    def _has_own_test(self, path: str) -> bool:
        folder, name = os.path.split(path)
        return os.path.join(folder, f"test_{name}") in self._collected

    @cached_property
    def _is_flat(self) -> bool:
        """Return whether there is no implementation outside of folders with tests."""
        folders = {os.path.dirname(each) for each in self._collected}
        rest = (each for each in self._files if os.path.dirname(each) not in folders)
        return not any(self._project.is_implementation(each) for each in rest)

    def _shipped(self, path: str) -> bool:
        """Return whether the project's metadata names its package, or no package of the project."""
        named = self._words()
        return path.startswith("src/") or not named or _top(path) in named

    def _metadata(self) -> frozenset[str]:
        """Return the top-level packages and modules that the project's metadata names.

        A distribution often has another name than its package: then there are none.
        """
        texts = [show(self._repo, self._commit, name) or "" for name in METADATA]
        words = {_plain(word) for text in texts for word in re.findall(r"[\w-]+", text)}
        tops = {_top(path) for path in self._files if path.endswith(".py")}
        return frozenset(words & tops - {"src", "setup"})

    def _users(self, path: str) -> tuple[str, ...]:
        """Return files that import the module, or name the file or at least its folder."""
        place = PurePosixPath(path)
        if place.suffix == ".py":
            stem = _escaped(place.parent.name if place.name == "__init__.py" else place.stem)
            imports = r"^[[:space:]]*(from|import)[[:space:]](.*[^[:alnum:]_])?"
            return self._naming(rf"{imports}{stem}([^[:alnum:]_]|$)", path)
        named = self._naming(rf"(^|[^[:alnum:]_.-]){_escaped(place.name)}($|[^[:alnum:]_])", path)
        if named or not place.parent.name:
            return named
        folder = _escaped(place.parent.name)
        return self._naming(rf"[\"'/]{folder}[\"'/]", path)

    def _naming(self, pattern: str, path: str) -> tuple[str, ...]:
        """Return files with this pattern, except documents."""
        words = ("grep", "-l", "-z", "-I", "-E", "-e", pattern, self._commit, "--")
        done = self._repo.attempt(*words)
        found = os.fsdecode(done.stdout).split("\0") if not done.code else []
        names = (each.partition(":")[2] for each in found if each)
        return tuple(each for each in names if each != path and self._reads(each))

    def _reads(self, path: str) -> bool:
        if self._plainly_test(path):
            return True
        document = any(matches(path, glob) for glob in DOCUMENTS)
        return self._project.is_implementation(path) and not document

    # which tests a changed file concerns

    def test_files(self, path: str, depth: int = DEPTH) -> set[str]:
        """Return the files with tests that use this test file, conftest, helper or data file."""
        if path in self._collected:
            return {path}
        name = PurePosixPath(path).name
        if name == "conftest.py":
            folder = os.path.dirname(path)
            return {each for each in self._collected if not folder or each.startswith(f"{folder}/")}
        found: set[str] = set()
        for user in self.users(path) if depth else ():
            if self._plainly_test(user):
                found |= self.test_files(user, depth - 1)
        return found


def _front(path: str) -> bool:
    """Return whether this is a top-level module, or the `__init__.py` of a top-level package."""
    parts = PurePosixPath(path.removeprefix("src/")).parts
    return path.endswith(".py") and (len(parts) == 1 or parts[1:] == ("__init__.py",))


def _top(path: str) -> str:
    return _plain(PurePosixPath(path).parts[0].removesuffix(".py"))


def _plain(word: str) -> str:
    return re.sub(r"[-_.]", "", word).lower()


def _escaped(text: str) -> str:
    return re.sub(r"([\\.\[\](){}*+?^$|])", r"\\\1", text)
