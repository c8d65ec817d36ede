"""Tests that fail alike wait for one of them: what becomes of those when it has its answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr_tmr.background import Background, Effect
from mngr_tmr.model import Outcome, Ruling, Run, Task, Verdict
from mngr_tmr.retrying import is_settled
from mngr_tmr.roles import Inspector, Note


class Canaries:
    """`ready` takes those that an agent has to work on after all."""

    def __init__(
        self,
        run: Run,
        note: Note,
        inspector: Inspector,
        background: Background,
        ready: Callable[[str], None],
    ) -> None:
        self._run, self._note, self._inspector = run, note, inspector
        self._background, self._ready = background, ready
        self._waiting: dict[str, list[str]] = defaultdict(list)

    def wait(self, task: Task) -> None:
        self._waiting[task.canary].append(task.id)

    @property
    def waiting(self) -> list[str]:
        return [each for group in self._waiting.values() for each in group]

    def clear(self) -> None:
        self._waiting.clear()

    def release_all(self) -> None:
        for canary in list(self._waiting):
            self.release(self._run.tasks[canary])

    def release(self, canary: Task) -> None:
        """Tell those that wait for this one what became of it."""
        latest = canary.latest
        if not self._waiting.get(canary.id):
            return
        if not canary.skipped and (latest is None or not is_settled(self._run, canary, latest)):
            return
        waiting, verdict = self._waiting.pop(canary.id), canary.verdict

        def work() -> Effect:
            fixed = verdict is not None and verdict.ruling is Ruling.ACCEPTED
            base = self._inspector.released_base(canary, verdict) if fixed and verdict else ""
            green = {
                each: bool(base) and self._inspector.passes(self._run.tasks[each].node_id, base)
                for each in waiting
            }
            return lambda: self._released(canary, waiting, base, green)

        self._background.submit(work, slot=False)

    def _released(
        self, canary: Task, waiting: Sequence[str], base: str, green: Mapping[str, bool]
    ) -> None:
        ended = canary.latest.ended if canary.latest else None
        blocked = ended.reason if ended and ended.outcome is Outcome.BLOCKED else ""
        for task_id in waiting:
            if blocked:
                self._skip(task_id, f"blocked like {canary.id}: {blocked}")
            elif green[task_id]:
                self._skip(task_id, f"passes with the fix of {canary.id}", canary.id)
            else:
                self._note("released", {"task": task_id, "base": base})
                self._ready(task_id)

    def spared(self, fixed: Task, verdict: Verdict, ready: Iterable[str]) -> list[str]:
        """Nobody has to find again what has just turned another test green as well."""
        green = set(verdict.turned_green) - {fixed.node_id}
        if not green or verdict.ruling is not Ruling.ACCEPTED or not self._run.options.canaries:
            return []
        found = [each for each in ready if self._is_new(each, green)]
        for task_id in found:
            self._skip(task_id, f"passes with the fix of {fixed.id}", fixed.id)
        return found

    def _is_new(self, task_id: str, green: set[str]) -> bool:
        task = self._run.tasks[task_id]
        return not task.tries and task.node_id in green

    def _skip(self, task_id: str, reason: str, by: str = "") -> None:
        self._note("skipped", {"task": task_id, "reason": reason, "by": by})
