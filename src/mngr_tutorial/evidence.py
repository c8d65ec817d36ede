"""The commands that tests ran, from the newest `result.json` of each test."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mngr_e2e import artifacts
from mngr_tutorial.citations import TestKey


@dataclass(frozen=True)
class PastRun:
    """One `result.json`."""

    node_id: str
    source: str
    outcome: str
    noop: bool
    commands: tuple[str, ...]
    written: float

    @property
    def test(self) -> TestKey:
        """Return file and name, without parameters, which are cases of one test."""
        path, *names = self.node_id.partition("[")[0].split("::")
        return path, ".".join(names)


class PastRuns:
    """The commands of each test. A result of another version of its source is ignored."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.newest: dict[str, PastRun] = {}
        self.stale: set[TestKey] = set()
        for path in folder.glob("*/*/result.json"):
            run = read_result(path)
            if run and not run.noop and not path.parent.parent.is_symlink():
                self._consider(run)
        self.by_test: dict[TestKey, list[PastRun]] = {}
        for run in self.newest.values():
            self.by_test.setdefault(run.test, []).append(run)

    def commands(self, test: TestKey) -> list[str] | None:
        """Return the commands of all cases together; None if there is no valid result."""
        runs = self.by_test.get(test)
        return None if runs is None else [text for run in runs for text in run.commands]

    def _consider(self, run: PastRun) -> None:
        path, test = run.test
        if run.source != artifacts.source_sha256(self.root / path, test):
            self.stale.add(run.test)
            return
        known = self.newest.get(run.node_id)
        if known is None or known.written < run.written:
            self.newest[run.node_id] = run


def read_result(path: Path) -> PastRun | None:
    """Return a result; None if it is incomplete or of another schema."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["schema"] != artifacts.SCHEMA:
            return None
        commands = tuple(str(command["text"]) for command in found["commands"])
        node_id, source = str(found["node_id"]), str(found["source_sha256"])
        outcome, noop = str(found["outcome"]), bool(found.get("noop"))
        return PastRun(node_id, source, outcome, noop, commands, path.stat().st_mtime)
    except (OSError, ValueError, KeyError, TypeError):
        return None
