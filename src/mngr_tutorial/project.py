"""The paths of a project: its tutorial, the tests that cite it and their artifacts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mngr.errors import NotFound, UsageError
from mngr_e2e import blocks, settings
from mngr_e2e.blocks import Block

TEST_FOLDERS = ("tests/e2e", "tests", ".")


@dataclass(frozen=True)
class Project:
    """A project with a tutorial."""

    root: Path
    tutorial: Path
    tests: tuple[Path, ...]
    """Files and folders with tests; new tests are written to the first folder."""
    artifacts: Path

    def blocks(self) -> list[Block]:
        try:
            text = self.tutorial.read_text(encoding="utf-8")
        except FileNotFoundError:
            hint = "write one, or name it in [tool.mngr_e2e] of pyproject.toml"
            raise NotFound(f"no tutorial {self.tutorial}", hint) from None
        except UnicodeDecodeError as error:
            raise UsageError(f"{self.tutorial} is not UTF-8: {error}") from None
        return blocks.parse(text)

    def named(self, path: Path) -> str:
        """Return the path relative to the project, if it is inside."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    @property
    def top(self) -> Path:
        """Return the top of the project's repository; without one, the project's folder."""
        folders = [self.root, *self.root.parents]
        return next((folder for folder in folders if (folder / ".git").exists()), self.root)

    @property
    def inside(self) -> str:
        """Return the project's folder relative to the top of its repository."""
        return str(self.root.relative_to(self.top))

    def test_files(self) -> list[Path]:
        found = [path for place in self.tests for path in _test_files(place)]
        return sorted(set(found))

    @property
    def test_folder(self) -> Path:
        return next((place for place in self.tests if place.is_dir()), self.root)


def find_project(start: Path, tests: list[str]) -> Project:
    """Return the project in the nearest parent with a pyproject.toml or a tutorial.sh."""
    marks = ("pyproject.toml", "tutorial.sh")
    folders = [start, *start.parents]
    root = next((f for f in folders if any((f / mark).is_file() for mark in marks)), start)
    try:
        found = settings.load(root)
    except settings.SettingsError as error:
        raise UsageError(str(error)) from None
    places = [start / name for name in tests] or [_default_tests(root)]
    for place in places:
        if not place.exists():
            raise NotFound(f"no tests at {place}")
    return Project(root, root / found.tutorial, tuple(places), root / found.artifacts)


def _default_tests(root: Path) -> Path:
    return next(root / name for name in TEST_FOLDERS if (root / name).is_dir())


def _test_files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    found = [*place.rglob("test_*.py"), *place.rglob("*_test.py")]
    return [path for path in found if not _is_hidden(path.relative_to(place))]


def _is_hidden(path: Path) -> bool:
    """Return whether a file is in .venv, .git, node_modules or the like."""
    return any(part.startswith(".") or part == "node_modules" for part in path.parts[:-1])
