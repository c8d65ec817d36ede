"""Which tests a change concerns: what each test needed when it last ran, kept between runs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

from mngr.api import Repo
from mngr.model.struct import Json
from mngr_tmr.journal.model import Run
from mngr_tmr.run.runs import root
from mngr_tmr.verify import patches

Map = dict[str, tuple[str, frozenset[str]]]
"""Test -> the commit at which it was seen, and the files it needed then."""


def path_of(home: str, repository: str) -> Path:
    name = Path(repository).name
    return root(home) / "coverage" / f"{name}-{zlib.crc32(repository.encode()):08x}.json"


def load(home: str, repository: str) -> Map:
    """Nothing where there is none, or none of ours."""
    try:
        kept = json.loads(path_of(home, repository).read_bytes())
        return {
            str(test): (str(entry["commit"]), frozenset(map(str, entry["files"])))
            for test, entry in kept["tests"].items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def keep(home: str, run: Run, touched: Mapping[str, tuple[str, ...] | None]) -> None:
    """Where nothing new is known, what was known of an earlier commit stays true of that."""
    found = load(home, run.repository)
    seen = {test: files for test, files in touched.items() if files is not None}
    found |= {test: (run.base, frozenset(files)) for test, files in seen.items()}
    tests: dict[str, Json] = {
        test: {"commit": commit, "files": [*sorted(files)]}
        for test, (commit, files) in found.items()
    }
    path = path_of(home, run.repository)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"tests": tests}))
    fresh.replace(path)


def changed(run: Run, repo: Repo, known: Map) -> set[str] | None:
    """Tests that need what was changed since they were seen, or that were not; None: no map."""
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
    """None where the commit is not there any more."""
    if repo.ask("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") is None:
        return None
    return {each.path for each in patches.changes(repo, commit, base)}
