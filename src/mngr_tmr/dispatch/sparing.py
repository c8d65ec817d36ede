"""Once a fix is accepted, every test that still fails and has no agent yet is tried with it.

What passes with the fixes accepted so far needs no agent. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mngr_tmr.dispatch.effects import Trial, Write
from mngr_tmr.dispatch.happenings import Tried
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.journal.model import Ruling, Run, Verdict


def is_fix(verdict: Verdict | None) -> bool:
    return bool(verdict and verdict.ruling is Ruling.ACCEPTED and verdict.implementation)


def is_broken(run: Run, task_id: str) -> bool:
    return run.tasks[task_id].want == "fix"


def fixes(run: Run) -> list[Fix]:
    """Of this round, in the order of the tasks' names."""
    return [
        Fix(task.id, task.tries[-1].base, task.verdict.implementation)
        for _, task in sorted(run.tasks.items())
        if task.round == run.round and task.current and task.verdict and is_fix(task.verdict)
    ]


def trial(run: Run, candidates: Iterable[str]) -> Trial | None:
    """Of all of them at once."""
    broken = [each for each in candidates if is_broken(run, each)]
    found = fixes(run) if broken and run.options.canaries else []
    return Trial((*found,), (*broken,)) if found else None


def spared(run: Run, tried: Tried, left: Collection[str]) -> list[Write]:
    """Of those that are left without an agent, unless the run was cancelled meanwhile."""
    lines = []
    for task_id in sorted({*tried.trial.tasks} & {*left}):
        found = tried.results.get(run.tasks[task_id].node_id)
        if found and found.outcome == "passed":
            by = _fixed_by(run, tried.trial.fixes, task_id)
            reason = f"passes with the fix of {by}"
            fields = {"task": task_id, "reason": reason, "by": by}
            lines.append(Write("skipped", fields, moves=(task_id,)))
    return lines


def _fixed_by(run: Run, fixes: Sequence[Fix], task_id: str) -> str:
    """The fix that turned this test green before; else the last one, or all together."""
    task = run.tasks[task_id]
    for fix in fixes:
        verdict = run.tasks[fix.task].verdict
        if task.canary == fix.task or (verdict and task.node_id in verdict.turned_green):
            return fix.task
    return fixes[-1].task
