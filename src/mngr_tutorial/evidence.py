"""The commands that tests ran, from the newest `result.json` of each test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mngr_e2e import artifacts

_Key = tuple[str, str]
"""A test file relative to the project, and the test's dotted name."""


@dataclass(frozen=True)
class PastRun:
    """One `result.json`."""

    node_id: str
    source: str
    commands: tuple[str, ...]
    written: float

    @property
    def test(self) -> _Key:
        """Return file and name, without parameters, which are cases of one test."""
        path, *names = self.node_id.partition("[")[0].split("::")
        return path, ".".join(names)


class PastRuns:
    """The commands of each test. A result of another version of its source is ignored."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.newest: dict[str, PastRun] = {}
        self.stale: set[_Key] = set()
        for path in folder.glob("*/*/result.json"):
            run = _read(path)
            if run is not None and not path.parent.parent.is_symlink():
                self._consider(run)
        self.by_test: dict[_Key, list[PastRun]] = {}
        for run in self.newest.values():
            self.by_test.setdefault(run.test, []).append(run)

    def commands(self, path: str, test: str) -> list[str] | None:
        """Return the commands of all cases together; None if there is no valid result."""
        runs = self.by_test.get((path, test))
        return None if runs is None else [text for run in runs for text in run.commands]

    def is_stale(self, path: str, test: str) -> bool:
        return (path, test) in self.stale

    def _consider(self, run: PastRun) -> None:
        path, test = run.test
        if run.source != artifacts.source_sha256(self.root / path, test):
            self.stale.add(run.test)
            return
        known = self.newest.get(run.node_id)
        if known is None or known.written < run.written:
            self.newest[run.node_id] = run


def _read(path: Path) -> PastRun | None:
    """Return a result; None if it is incomplete, of another schema or of a no-op run."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["schema"] != artifacts.SCHEMA or found.get("noop"):
            return None
        commands = tuple(str(command["text"]) for command in found["commands"])
        node_id, source = str(found["node_id"]), str(found["source_sha256"])
        return PastRun(node_id, source, commands, path.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        return None
