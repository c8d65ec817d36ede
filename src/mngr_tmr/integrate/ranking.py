"""Accepted changes, and the order of fixes: by fixed tests, number of agents, and size.

Pure, and the same for the same verdicts, so that a resumed run builds the same branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mngr_tmr.journal.model import Outcome, Ruling, Run, Task, Verdict


@dataclass(frozen=True)
class Repair:
    """A fix: one implementation change, found by one or more agents."""

    task: str
    """The first task, by name, whose agent found it."""
    tasks: tuple[str, ...]
    implementation: str
    base: str
    turned_green: tuple[str, ...]
    added: tuple[str, ...]
    """The tests that its test changes add, if these require the fix."""
    lines: int
    files: int

    @property
    def score(self) -> float:
        return 10.0 * len(self.turned_green) + 5.0 * len(self.tasks) - self.lines - 2.0 * self.files


@dataclass(frozen=True)
class Part:
    """A change of tests or documents, and the tasks whose agents made it."""

    tasks: tuple[Task, ...]
    verdict: Verdict
    base: str

    @property
    def commit(self) -> str:
        return self.verdict.other

    @property
    def asserts(self) -> set[str]:
        """Return the tests that it adds or changes."""
        return {*self.verdict.tests_changed, *self.verdict.tests_added}

    @property
    def claims(self) -> set[str]:
        """Return the tests that pass with it; its own too, unless that requires a fix."""
        if self.verdict.expectation:
            return set()  # its test passes only with the last commit
        alone = [each for each in self.tasks if each.verdict and not each.verdict.implementation]
        return {*(each.node_id for each in alone), *self.asserts}


def accepted(run: Run) -> list[tuple[Task, Verdict]]:
    """Return the changes accepted in this round, in the order of the tasks' names."""
    return [
        (task, task.verdict)
        for _, task in sorted(run.tasks.items())
        if task.round == run.round and task.verdict and task.verdict.ruling is Ruling.ACCEPTED
    ]


def claimed(run: Run) -> set[str]:
    """Return the tests that commits of earlier rounds claim."""
    tasks = [run.tasks[each] for pick in run.picks[: run.kept[0]] for each in pick.tasks]
    found = {task.node_id for task in tasks}
    for verdict in [task.verdict for task in tasks if task.verdict]:
        found |= {*verdict.turned_green, *verdict.tests_changed, *verdict.tests_added}
    return found


def held(run: Run) -> list[tuple[Task, Verdict]]:
    """Return the changes of all rounds that are held for review, by the tasks' names."""
    return [
        (task, task.held.verdict)
        for _, task in sorted(run.tasks.items())
        if task.held and task.held.verdict and ending_of(task) == Ruling.HELD
    ]


def held_ref(run: Run, task: Task) -> str:
    """Return the ref of the commit with a change that is held for review."""
    return f"refs/mngr/tmr/{run.name}/held/{task.id}"


def repairs(
    found: Iterable[tuple[Task, Verdict]],
    identity: Callable[[str, str], str],
    size: Callable[[str, str], tuple[int, int]],
) -> list[Repair]:
    """Return the fixes, best first; the same change of several agents is one fix."""
    groups: dict[str, list[tuple[Task, Verdict]]] = {}
    for task, verdict in found:
        if verdict.implementation:
            key = identity(base_of(task), verdict.implementation)
            groups.setdefault(key, []).append((task, verdict))
    ranked = [_repair(group, size) for group in groups.values()]
    return _after_their_bases(sorted(ranked, key=lambda each: (-each.score, each.task)))


def _after_their_bases(ranked: Sequence[Repair]) -> list[Repair]:
    """Return the fixes, each after the fix that it is based on, such as a canary's."""
    made = {each.implementation: each for each in ranked}
    placed: dict[str, Repair] = {}

    def place(each: Repair) -> None:
        below = made.get(each.base)
        if each.implementation in placed:
            return
        if below is not None and below is not each:
            place(below)
        placed[each.implementation] = each

    for each in ranked:
        place(each)
    return list(placed.values())


def base_of(task: Task) -> str:
    assert task.telling is not None
    return task.telling.base


def _repair(
    group: Sequence[tuple[Task, Verdict]], size: Callable[[str, str], tuple[int, int]]
) -> Repair:
    task, verdict = group[0]
    green = {each for _, other in group for each in other.turned_green}
    added = {each for _, other in group if other.together for each in other.tests_added}
    lines, files = size(base_of(task), verdict.implementation)
    return Repair(
        task=task.id,
        tasks=tuple(each.id for each, _ in group),
        implementation=verdict.implementation,
        base=base_of(task),
        turned_green=tuple(sorted(green)),
        added=tuple(sorted(added)),
        lines=lines,
        files=files,
    )


WELL = ("unchanged", "skipped", "passes", "fixed", "improved")
"""Results that require no action."""
NOT_TAKEN = (Ruling.HELD, Ruling.REFUSED, Ruling.UNDECIDED)


def counts(run: Run) -> Mapping[str, int]:
    """Return the number of tests per result; each selected test is counted once."""
    found: dict[str, int] = {}
    for task in run.tasks.values():
        ending = ending_of(task)
        found[ending] = found.get(ending, 0) + 1
    return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def ending_of(task: Task) -> str:
    """Return the result of a task in a word or two."""
    latest, verdict = task.latest, task.verdict
    if task.passes_with:
        return "passes"
    if task.evicted:
        return "evicted"
    if task.included:
        return _accepted(task, verdict)
    if task.skipped:
        if task.held and not task.spared_by:
            return str(Ruling.HELD)
        return task.skipped_as or "skipped"
    if latest is None or latest.ended is None or task.current is None:
        return "unfinished"
    if verdict is not None and verdict.ruling is Ruling.ACCEPTED:
        return _accepted(task, verdict)
    if verdict is not None and verdict.ruling in NOT_TAKEN:
        return str(verdict.ruling)
    return str(latest.ended.outcome)


def _accepted(task: Task, verdict: Verdict | None) -> str:
    if verdict is not None and verdict.expectation:
        return str(Outcome.EXPECTATION)
    fixed = task.want == "fix" or (verdict is not None and verdict.implementation)
    return "fixed" if fixed else "improved"
