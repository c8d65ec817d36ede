"""Once a fix is accepted, every test that still fails and has no agent yet is tried with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress

from mngr_tmr.dispatch.background import Background, Effect
from mngr_tmr.dispatch.canaries import Canaries
from mngr_tmr.dispatch.roles import Fix, Note, Trials
from mngr_tmr.journal.model import Ruling, Run, TestRun


class Sparing:
    """What passes with the fixes accepted so far needs no agent: it is taken out of `ready`."""

    def __init__(
        self,
        run: Run,
        note: Note,
        trials: Trials,
        background: Background,
        canaries: Canaries,
        ready: deque[str],
    ) -> None:
        self._run, self._note, self._trials = run, note, trials
        self._background, self._canaries, self._ready = background, canaries, ready
        self._due = bool(self._fixes())
        self._busy = False

    @property
    def pending(self) -> bool:
        """A fix was accepted, and it is not known yet which tests pass with it."""
        return self._due or self._busy

    def accepted(self) -> None:
        self._due = True

    def is_broken(self, task_id: str) -> bool:
        return self._run.tasks[task_id].want == "fix"

    def _fixes(self) -> list[Fix]:
        """Of this round, in the order of the tasks' names."""
        return [
            Fix(task.id, task.tries[-1].base, task.verdict.implementation)
            for _, task in sorted(self._run.tasks.items())
            if task.round == self._run.round
            and task.current is not None
            and task.verdict is not None
            and task.verdict.ruling is Ruling.ACCEPTED
            and task.verdict.implementation
        ]

    def begin(self) -> None:
        """All at once, and once for each fix that was accepted."""
        if not self._due or self._busy or self._run.cancelled:
            return
        self._due = False
        broken = [*filter(self.is_broken, (*self._ready, *self._canaries.waiting))]
        tests = [self._run.tasks[each].node_id for each in broken]
        fixes = self._fixes()
        if not tests or not fixes or not self._run.options.canaries:
            return
        self._busy = True

        def work() -> Effect:
            results: Mapping[str, TestRun] = {}
            with suppress(Exception):  # then nothing is known, and agents find out
                results = self._trials.together(fixes, tests)
            return lambda: self._tried(fixes, broken, results)

        self._background.submit(work, slot=False)

    def _tried(
        self, fixes: Sequence[Fix], broken: Sequence[str], results: Mapping[str, TestRun]
    ) -> None:
        self._busy = False
        green = {
            each
            for each in broken
            if (found := results.get(self._run.tasks[each].node_id)) and found.outcome == "passed"
        }
        still = {*self._ready, *self._canaries.waiting}  # unless the run was cancelled meanwhile
        for task_id in sorted(green & still):
            by = self._fixed_by(fixes, task_id)
            reason = f"passes with the fix of {by}"
            self._note("skipped", {"task": task_id, "reason": reason, "by": by})
        self._canaries.forget(green)
        for task_id in [each for each in self._ready if each in green]:
            self._ready.remove(task_id)
        for fix in fixes:
            self._canaries.regroup(fix.task, results)

    def _fixed_by(self, fixes: Sequence[Fix], task_id: str) -> str:
        """The fix that turned this test green before; else the last one, or all together."""
        task = self._run.tasks[task_id]
        for fix in fixes:
            verdict = self._run.tasks[fix.task].verdict
            if task.canary == fix.task or (verdict and task.node_id in verdict.turned_green):
                return fix.task
        return fixes[-1].task
