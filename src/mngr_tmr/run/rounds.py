"""Select the tests to run at the tip of the branch, and those that get another agent. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mngr_tmr.dispatch.life import is_missing
from mngr_tmr.integrate import ranking
from mngr_tmr.journal.model import Outcome, Ruling, Run, Task, TestRun


def tip_of(run: Run) -> str:
    return run.picks[-1].commit if run.picks else run.base


def to_try(run: Run) -> list[Task]:
    """Return the tasks whose tests are not known to pass; none without a commit."""
    if not run.picks:
        return []
    return [task for task in run.tasks.values() if _is_broken(run, task)]


def _is_broken(run: Run, task: Task) -> bool:
    standing = run.before(task.node_id).standing
    return standing == "failed" and ranking.ending_of(task) not in ("fixed", "expectation changed")


def passing(run: Run, results: Mapping[str, TestRun]) -> dict[str, str]:
    """Return the passing tasks, each with the commit that fixed it, or the tip."""
    return {
        task.id: _commit(run, task.node_id)
        for task in to_try(run)
        if (found := results.get(task.node_id)) and found.outcome == "passed"
    }


def _commit(run: Run, node_id: str) -> str:
    for pick in run.picks:
        verdicts = [task.verdict for task in run.tasks_of(pick)]
        if any(verdict and node_id in verdict.turned_green for verdict in verdicts):
            return pick.commit
    return tip_of(run)


def reopened(run: Run, moved: Collection[str] = ()) -> list[Task]:
    """Return the tasks that get another agent; `moved` are the files changed on the branch."""
    progress = len(run.picks) > run.kept[0]
    if not progress or run.cancelled or run.round >= run.options.rounds:
        return []
    return [task for task in run.tasks.values() if _needs_another(run, task, moved)]


def _needs_another(run: Run, task: Task, moved: Collection[str]) -> bool:
    ended = task.latest.ended if task.latest else None
    if task.passes_with or (ended is not None and is_missing(ended)):
        return False
    held = ranking.ending_of(task) == Ruling.HELD
    if task.evicted or held or _is_broken(run, task):
        return task.skipped_as != Outcome.BLOCKED
    refused = task.verdict is not None and task.verdict.ruling is Ruling.REFUSED
    return refused and task.node_id.partition("::")[0] in moved
