"""Store what each test executes: lines, kept with its run, and files, kept between runs."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from mngr.api import Repo
from mngr.files import replace
from mngr.model.struct import Json
from mngr_tmr.journal.model import Run
from mngr_tmr.run.clustering import Lines
from mngr_tmr.run.runs import root
from mngr_tmr.verify import patches

NAME = "lines.json"
RANGES = re.compile(r"\d{1,7}(?:-\d{1,7})?")
MOST = 1_000_000
"""Maximum number of lines per test: code under test may claim any number."""

Reached = Mapping[str, Mapping[str, str]]
"""test -> path -> its lines, as 1-3,7"""
Files = dict[str, tuple[str, frozenset[str]]]
"""test -> the commit at which it was measured, and the files that it used there"""


# lines, of one run


def keep(folder: Path, reached: Reached) -> None:
    replace(str(folder / NAME), json.dumps(reached).encode())


def load(folder: Path) -> dict[str, Lines]:
    """Return the lines of each test; nothing if they were not measured."""
    try:
        kept = json.loads((folder / NAME).read_bytes())
        return {str(test): decoded(files) for test, files in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def decoded(files: Mapping[str, str]) -> Lines:
    return frozenset(islice(_lines(files), MOST))


def _lines(files: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for path, text in files.items():
        for part in RANGES.findall(text):
            first, _, last = part.partition("-")
            yield from ((path, line) for line in range(int(first), int(last or first) + 1))


# files, between runs


def load_files(home: str, repository: str) -> Files:
    """Return the files of each test of a repository; nothing if they were not measured."""
    try:
        kept = json.loads(_files_path(home, repository).read_bytes())
        return {
            str(test): (str(entry["commit"]), frozenset(map(str, entry["files"])))
            for test, entry in kept["tests"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def keep_files(home: str, run: Run, touched: Mapping[str, tuple[str, ...] | None]) -> None:
    """Add what was measured; for all other tests keep the files of an earlier commit."""
    found = load_files(home, run.repository)
    seen = {test: files for test, files in touched.items() if files is not None}
    found |= {test: (run.base, frozenset(files)) for test, files in seen.items()}
    tests: dict[str, Json] = {
        test: {"commit": commit, "files": [*sorted(files)]}
        for test, (commit, files) in found.items()
    }
    replace(str(_files_path(home, run.repository)), json.dumps({"tests": tests}).encode())


def _files_path(home: str, repository: str) -> Path:
    name = Path(repository).name
    return root(home) / "coverage" / f"{name}-{zlib.crc32(repository.encode()):08x}.json"


def changed(run: Run, repo: Repo, known: Files) -> set[str] | None:
    """Return the tests that use a changed file or were never measured; None if none was."""
    if not known:
        return None
    since = {commit: _changes(repo, commit, run.base) for commit in {c for c, _ in known.values()}}
    found = set()
    for test in run.tests:
        commit, files = known.get(test, ("", frozenset()))
        paths = since.get(commit)
        if paths is None or paths & files:
            found.add(test)
    return found


def _changes(repo: Repo, commit: str, base: str) -> set[str] | None:
    """Return the paths that changed since a commit; None if it no longer exists."""
    if repo.ask("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is None:
        return None
    return {each.path for each in patches.changes(repo, commit, base)}
