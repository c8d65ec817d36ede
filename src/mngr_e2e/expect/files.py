"""What can be said of a file: whether it is there, what is in it, its mode."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Self

from mngr_e2e.expect import matchers
from mngr_e2e.expect.expectations import Expectation
from mngr_e2e.expect.matchers import Check

__tracebackhide__ = True  # pytest then shows the line of the test, not ours


class FileExpectation(Expectation[Path]):
    """What is said of a file, as it is when it is looked at."""

    def to_exist(self) -> Self:
        return self._holds(_exists)

    def not_to_exist(self) -> Self:
        return self._holds(_exists, False)

    def to_have_content(self, wanted: str | bytes) -> Self:
        return self._holds(lambda path: matchers.equals(_content(path), decoded(wanted)))

    def not_to_have_content(self, wanted: str | bytes) -> Self:
        return self._holds(lambda path: matchers.equals(_content(path), decoded(wanted)), False)

    def to_contain(self, wanted: str | bytes) -> Self:
        return self._holds(lambda path: matchers.contains(_content(path), decoded(wanted)))

    def not_to_contain(self, wanted: str | bytes) -> Self:
        return self._holds(lambda path: matchers.contains(_content(path), decoded(wanted)), False)

    def to_have_mode(self, mode: int) -> Self:
        return self._holds(lambda path: _has_mode(path, mode))

    def not_to_have_mode(self, mode: int) -> Self:
        return self._holds(lambda path: _has_mode(path, mode), False)


def _exists(path: Path) -> Check:
    """A symbolic link to nothing is there."""
    there = path.exists() or path.is_symlink()
    if there or not path.parent.is_dir():
        return Check(there, "to exist", "" if there else f"there is no {path.parent} either")
    beside = sorted(entry.name for entry in path.parent.iterdir())[:20]
    return Check(False, "to exist", f"beside it are: {', '.join(beside) or 'no files'}")


def _has_mode(path: Path, wanted: int) -> Check:
    mode = stat.S_IMODE(path.stat().st_mode)
    return Check(mode == wanted, f"to have mode {wanted:04o}", f"it has {mode:04o}")


def _content(path: Path) -> str:
    return decoded(path.read_bytes())


def decoded(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode("utf-8", "surrogateescape")
