"""Tests that still fail, run with what was accepted so far: what passes needs no agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mngr.api import Repo
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.journal.model import Run, TestRun
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench, Check
from mngr_tmr.verify.companions import fails_otherwise, of_files


class RealTrials:
    def __init__(self, run: Run, repo: Repo, bench: Bench, folder: Path) -> None:
        self._run, self._repo, self._bench, self._folder = run, repo, bench, folder

    def together(self, fixes: Sequence[Fix], tests: Sequence[str]) -> Mapping[str, TestRun]:
        return self.results("with the accepted fixes", self._combined(fixes), tests)

    def results(self, what: str, commit: str, tests: Sequence[str]) -> dict[str, TestRun]:
        """Each test once; with all tests of its file where it fails otherwise than before."""
        found: dict[str, TestRun] = {}
        for checked in self._bench.check_all(what, commit, tests):
            found |= {node: now for node, now in checked.runs.items() if node in set(tests)}
        strange = [n for n, now in found.items() if fails_otherwise(self._run, n, now)]
        if strange:  # in one session, which is not spread over the workers
            files = of_files(self._run, strange)
            again = self._bench.check(Check(f"{what}, whole files", commit, files))
            found |= {n: again.runs[n] for n in strange if again.outcome(n) == "passed"}
        return found

    def _combined(self, fixes: Sequence[Fix]) -> str:
        """A commit with all of them but those that conflict with one before."""
        tip = self._run.tip or self._run.base
        tree = self._repo.line("rev-parse", f"{tip}^{{tree}}")
        self._folder.mkdir(parents=True, exist_ok=True)
        for fix in fixes:
            result = patches.picked(self._repo, self._folder, tree, fix.base, fix.commit)
            tree = result if isinstance(result, str) else tree
        commit = patches.commit(self._repo, tree, [tip], "The accepted fixes\n")
        self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/together", commit)
        return commit
