"""Tests that probably fail for one reason wait for one of them, their canary. Pure.

`answer` is called for every canary at every step of a run, so no test waits for a canary that has
ended, was skipped, or never existed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from mngr.model.struct import Json
from mngr_tmr.dispatch.effects import Write
from mngr_tmr.dispatch.life import is_missing, is_open
from mngr_tmr.integrate.ranking import NOT_TAKEN
from mngr_tmr.journal.model import ANSWERS, Outcome, Run, Task, TestRun
from mngr_tmr.run import clustering, selecting
from mngr_tmr.run.clustering import FailingTest

SAY_SO = 2
"""Canaries that have to report something missing before the cluster is given up."""


def groups(run: Run, waiting: Iterable[str]) -> dict[str, list[str]]:
    """Return the waiting tasks by canary."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in waiting:
        found[run.tasks[each].canary].append(each)
    return found


def answer(run: Run, canary: str, waiting: Sequence[str], *, under_trial: bool) -> list[Write]:
    """Return the events for the tasks that wait for a canary; none while it has no result.

    A fix counts once the waiting tests have been tried with it.
    """
    task = run.tasks.get(canary)
    if task is None:
        return regroup(run, waiting, {}, "")
    if is_open(run, task) or (under_trial and task.fix):
        return []
    failed = _failed(run, task.cluster)
    missing = [each for each in failed if _is_missing(each)]
    if task.fix:
        return regroup(run, waiting, {}, task.fix)
    if len(missing) >= SAY_SO:
        return _skip_all(waiting, missing)
    if len(failed) >= run.options.canaries:
        return _skip_all(waiting, failed)
    # This includes a canary that was skipped because it passes with another fix.
    return _next(run, waiting, failed, task.cluster)


def _failed(run: Run, cluster: str) -> list[Task]:
    """Return the tasks of a cluster whose agents ended in this round without a fix."""
    return [
        task
        for task in run.tasks.values()
        if task.cluster == cluster
        and task.round == run.round
        and task.current is not None
        and not is_open(run, task)
        and not task.fix
    ]


def _skip_all(waiting: Sequence[str], like: Sequence[Task]) -> list[Write]:
    """Give up the whole cluster."""
    word, reason = _ending(like[-1])
    names: dict[str, list[str]] = {}
    for task in sorted(like, key=lambda each: _ending(each)[0] == word):
        names.setdefault(_ending(task)[0], []).append(task.id)
    told = "; ".join(f"{each} like {', '.join(ids)}" for each, ids in names.items())
    told += f": {reason}" if reason else ""
    return [
        Write("skipped", {"task": each, "reason": told, "by": "", "as": word}, moves=(each,))
        for each in waiting
    ]


def _next(run: Run, waiting: Sequence[str], failed: Sequence[Task], cluster: str) -> list[Write]:
    """Choose another canary, if possible of another kind than those that failed."""
    functions = {task.node_id.partition("[")[0] for task in failed}
    signatures = {task.signature for task in failed}

    def order(failure: FailingTest) -> tuple[object, ...]:
        known = (failure.function in functions, failure.signature in signatures)
        return (*known, *failure.effort)

    members = sorted((_failure(run, each, {}) for each in waiting), key=order)
    return _group([members], "", cluster)


def regroup(
    run: Run, waiting: Sequence[str], results: Mapping[str, TestRun], base: str
) -> list[Write]:
    """Group the tests that still fail with a fix, their new base, by how they fail with it."""
    members = [_failure(run, each, results) for each in waiting]
    return _group(clustering.clusters(members), base, "")


def _group(groups: Sequence[Sequence[FailingTest]], base: str, cluster: str) -> list[Write]:
    """Return the event by which the first of each group gets an agent and the others wait."""
    told: list[Json] = [
        {
            "task": each.id,
            "canary": "" if each is group[0] else group[0].id,
            "cluster": cluster or (group[0].id if len(group) > 1 else ""),
            "signature": each.signature,
            "base": base,
        }
        for group in groups
        for each in group
    ]
    moves = tuple(each.id for group in groups for each in group)
    return [Write("grouped", {"tasks": told}, moves)] if told else []


def _failure(run: Run, task_id: str, results: Mapping[str, TestRun]) -> FailingTest:
    # Only the number of lines is known here, which is enough for the order of canaries.
    task = run.tasks[task_id]
    lines = frozenset(("", number) for number in range(task.reach))
    return selecting.failure(run, task, lines, results)


def _is_missing(task: Task) -> bool:
    ended = task.current.ended if task.current else None
    return ended is not None and is_missing(ended)


def _ending(task: Task) -> tuple[str, str]:
    """Return how the agent of a task ended, and why."""
    current = task.current
    assert current is not None
    assert current.ended is not None
    if current.verdict and current.verdict.ruling in NOT_TAKEN:
        return str(current.verdict.ruling), current.verdict.reason
    if current.ended.outcome in ANSWERS:
        return str(Outcome.NO_RESULT), ""
    if current.ended.outcome is Outcome.BLOCKED and not is_missing(current.ended):
        return str(Outcome.NO_RESULT), current.ended.reason
    return str(current.ended.outcome), current.ended.reason
