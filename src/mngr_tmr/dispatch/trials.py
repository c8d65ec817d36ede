"""Try failing tests with the accepted fixes: a test that passes gets no agent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from mngr.api import Repo
from mngr_tmr.dispatch.effects import Trial, Tried, Write
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.journal.model import Run, TestRun
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.cases import fails_otherwise, of_files
from mngr_tmr.verify.checks import Check

# selection and results: pure


def is_broken(run: Run, task_id: str) -> bool:
    """Return whether a test fails; a flaky one may pass with any fix, which proves nothing."""
    task = run.tasks[task_id]
    return task.want == "fix" and run.before(task.node_id).standing != "flaky"


def fixes(run: Run) -> list[Fix]:
    """Return the fixes accepted in this round, in the order of the tasks' names."""
    return [
        Fix(task.id, task.tries[-1].base, task.fix)
        for _, task in sorted(run.tasks.items())
        if task.round == run.round and task.fix
    ]


def trial(run: Run, candidates: Iterable[str]) -> Trial | None:
    """Return the trial of these tasks with all fixes, or None if there is nothing to try."""
    broken = [each for each in candidates if is_broken(run, each)]
    found = fixes(run) if broken and run.options.canaries else []
    return Trial((*found,), (*broken,)) if found else None


def spared(run: Run, tried: Tried, left: Collection[str]) -> list[Write]:
    """Skip the tasks whose tests pass, if they still have no agent."""
    events = []
    for task_id in sorted({*tried.trial.tasks} & {*left}):
        found = tried.results.get(run.tasks[task_id].node_id)
        if found and found.outcome == "passed":
            by = _fixed_by(run, tried.trial.fixes, task_id)
            fields = {"task": task_id, "reason": f"passes with the fix of {by}", "by": by}
            events.append(Write("skipped", fields, moves=(task_id,)))
    return events


def _fixed_by(run: Run, fixes: Sequence[Fix], task_id: str) -> str:
    """Return the task whose fix made this test pass before, else that of the last fix."""
    task = run.tasks[task_id]
    for fix in fixes:
        verdict = run.tasks[fix.task].verdict
        if task.canary == fix.task or (verdict and task.node_id in verdict.turned_green):
            return fix.task
    return fixes[-1].task


class RealTrials:
    """Runs tests with fixes, on the bench."""

    def __init__(self, run: Run, repo: Repo, bench: Bench, folder: Path) -> None:
        self._run, self._repo, self._bench, self._folder = run, repo, bench, folder

    def together(self, fixes: Sequence[Fix], tests: Sequence[str]) -> Mapping[str, TestRun]:
        return self.results("with the accepted fixes", self._combined(fixes), tests)

    def results(self, what: str, commit: str, tests: Sequence[str]) -> dict[str, TestRun]:
        """Run each test once; if it fails in a new way, once more with all tests of its file."""
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
        """Return a commit with all fixes except those that conflict with an earlier one."""
        tip = self._run.tip or self._run.base
        tree = self._repo.line("rev-parse", f"{tip}^{{tree}}")
        self._folder.mkdir(parents=True, exist_ok=True)
        for fix in fixes:
            result = patches.picked(self._repo, self._folder, tree, fix.base, fix.commit)
            tree = result if isinstance(result, str) else tree
        commit = patches.commit(self._repo, tree, [tip], "The accepted fixes\n")
        self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/together", commit)
        return commit
