"""Tests that probably fail for one reason wait for one of them, its canary.

What becomes of those that wait follows from what became of the canary. It is asked for at every
step of a run, so none waits for a canary that has ended, was skipped, or never existed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from mngr.struct import Json
from mngr_tmr import clustering
from mngr_tmr.clustering import Failure
from mngr_tmr.model import ANSWERS, Baseline, Outcome, Ruling, Run, Task, TestRun
from mngr_tmr.ranking import NOT_TAKEN
from mngr_tmr.retrying import is_missing, is_open
from mngr_tmr.roles import Note

SAY_SO = 2
"""So many canaries have to say that something is missing before it counts for all."""


class Canaries:
    """`ready` takes those that an agent has to work on."""

    def __init__(self, run: Run, note: Note, ready: Callable[[str], None]) -> None:
        self._run, self._note, self._ready = run, note, ready
        self._waiting: dict[str, list[str]] = defaultdict(list)

    def wait(self, task: Task) -> None:
        self._waiting[task.canary].append(task.id)

    @property
    def waiting(self) -> list[str]:
        return [each for group in self._waiting.values() for each in group]

    def clear(self) -> None:
        self._waiting.clear()

    def forget(self, task_ids: Iterable[str]) -> None:
        """These wait no more: they pass with a fix of another."""
        gone = set(task_ids)
        for canary, group in self._waiting.items():
            self._waiting[canary] = [each for each in group if each not in gone]

    def settle(self, *, under_trial: bool) -> None:
        """Move those whose canary has its answer; a fix is an answer once they were tried."""
        for canary in [each for each, group in self._waiting.items() if group]:
            task = self._run.tasks.get(canary)
            if task is not None and (is_open(self._run, task) or (under_trial and _fix(task))):
                continue
            self._answered(task, self._waiting.pop(canary))

    def release_all(self) -> None:
        """They wait for each other, as only a damaged journal can say: no canary, then."""
        for task_id in self.waiting:
            self._ready(task_id)
        self.clear()

    # what became of the canary

    def _answered(self, canary: Task | None, waiting: Sequence[str]) -> None:
        if canary is None:
            self._regroup(waiting, {}, "")
            return
        failed = self._failed(canary.cluster)
        missing = [task for task in failed if _is_missing(task)]
        if _fix(canary):
            self._regroup(waiting, {}, _fix(canary))
        elif len(missing) >= SAY_SO:
            self._skip_all(waiting, missing)
        elif len(failed) >= self._run.options.canaries:
            self._skip_all(waiting, failed)
        else:  # also where it was skipped, because it passes with another fix
            self._next(waiting, failed, canary.cluster)

    def _failed(self, cluster: str) -> list[Task]:
        """Of a cluster, those whose agents ended in this round and brought no fix."""
        return [
            task
            for task in self._run.tasks.values()
            if task.cluster == cluster
            and task.round == self._run.round
            and task.current is not None
            and not is_open(self._run, task)
            and not _fix(task)
        ]

    def _skip_all(self, waiting: Sequence[str], like: Sequence[Task]) -> None:
        """The whole cluster is given up."""
        names = ", ".join(task.id for task in like)
        word, reason = _ending(like[-1])
        for task_id in waiting:
            told = f"{word} like {names}: {reason}" if reason else f"{word} like {names}"
            self._note("skipped", {"task": task_id, "reason": told, "by": ""})

    def _next(self, waiting: Sequence[str], failed: Sequence[Task], cluster: str) -> None:
        """Another canary, of another kind than those that failed if there is one."""
        functions = {_function(task.node_id) for task in failed}
        signatures = {task.signature for task in failed}

        def order(failure: Failure) -> tuple[object, ...]:
            known = (failure.function in functions, failure.signature in signatures)
            return (*known, *failure.effort)

        members = sorted((self._failure(each, {}) for each in waiting), key=order)
        self._group([members], "", cluster)

    def regroup(self, canary: str, results: Mapping[str, TestRun]) -> None:
        """Those that still fail with its fix, by how they fail now."""
        waiting = self._waiting.pop(canary, [])
        self._regroup(waiting, results, _fix(self._run.tasks[canary]))

    def _regroup(self, waiting: Sequence[str], results: Mapping[str, TestRun], base: str) -> None:
        members = [self._failure(each, results) for each in waiting]
        self._group(clustering.clusters(members), base, "")

    def _group(self, groups: Sequence[Sequence[Failure]], base: str, cluster: str) -> None:
        """The first of each group gets an agent, the others wait for it."""
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
        if told:
            self._note("grouped", {"tasks": told})
        for first, *others in groups:
            self._ready(first.id)
            for each in others:
                self.wait(self._run.tasks[each.id])

    def _failure(self, task_id: str, results: Mapping[str, TestRun]) -> Failure:
        task = self._run.tasks[task_id]
        before = self._run.baseline.get(task.node_id, Baseline()).runs
        now = results.get(task.node_id) or next(iter(before), TestRun("failed"))
        signature = now.signature or task.signature
        seconds = before[0].seconds if before else 0.0
        # Only how many lines it runs is known here, which is all that the order of canaries asks.
        lines = frozenset(("", number) for number in range(task.reach))
        return Failure(task.id, task.node_id, signature, now.exception, seconds, lines)


def _fix(task: Task) -> str:
    """The commit with what was accepted of the canary's work on the implementation."""
    verdict = task.current.verdict if task.current else None
    return verdict.implementation if verdict and verdict.ruling is Ruling.ACCEPTED else ""


def _is_missing(task: Task) -> bool:
    ended = task.current.ended if task.current else None
    return ended is not None and is_missing(ended)


def _ending(task: Task) -> tuple[str, str]:
    """How its agent ended, in a word, and why."""
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


def _function(node_id: str) -> str:
    return node_id.partition("[")[0]
