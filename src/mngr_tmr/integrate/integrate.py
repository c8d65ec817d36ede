"""From verified tries to one linear branch that passes its gate at every commit. In code, with git.

First one commit with all changes of tests and documents that stand alone, then the repairs by
rank, then each changed expectation by itself, for a person to decide. What is held for review is
kept as refs, or comes last where the user asked for it. Always from the start, and each step
decided by the verdicts alone: who repeats it gets the same trees and messages. What a gate has said
of a tree is remembered in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mngr.api import Repo
from mngr_outcome.codec import to_json
from mngr_tmr.integrate import messages, ranking
from mngr_tmr.integrate.gating import Gate, Note
from mngr_tmr.integrate.ranking import Repair
from mngr_tmr.journal.model import Eviction, Pick, Run, Task, Verdict
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench

Resolve = Callable[[str, str, str, Sequence[str]], str]
"""(tip, base, part, paths) -> a tree with the conflict resolved, or nothing"""


@dataclass(frozen=True)
class Part:
    """A change of tests or documents, and the tasks that made exactly this one."""

    tasks: tuple[Task, ...]
    verdict: Verdict
    base: str

    @property
    def commit(self) -> str:
        return self.verdict.other


@dataclass
class Branch:
    """As far as it has grown."""

    tip: str
    claimed: set[str] = field(default_factory=set)


class Integration:
    def __init__(
        self, run: Run, repo: Repo, bench: Bench, folder: Path, note: Note, resolve: Resolve
    ) -> None:
        self._run, self._repo = run, repo
        self._folder, self._note, self._resolve = folder, note, resolve
        self._evicted: set[tuple[str, str]] = set()
        self._gate = Gate(run, repo, bench, note)
        self._answers: dict[tuple[str, str], str] = {}

    def integrate(self) -> str:
        """The tip of the branch; the base itself where nothing is to be changed."""
        cancelled = self._run.cancelled
        self._note("integration_started", {})
        branch = Branch(self._run.tip or self._run.base, ranking.claimed(self._run))
        self._add_others(branch)
        accepted, held = ranking.accepted(self._run), ranking.held(self._run)
        self._keep(held)
        steps = self._steps(branch, accepted)
        if self._run.options.include_flagged:
            steps += self._steps(branch, held)
        for step in steps:
            if self._run.cancelled and not cancelled:
                break  # just now; what is there passed its gates
            step()
        return branch.tip

    def _steps(
        self, branch: Branch, found: Sequence[tuple[Task, Verdict]]
    ) -> list[Callable[[], None]]:
        repairs = ranking.repairs(found, self._identity, self._size)
        return [
            *(partial(self._add_repair, branch, each) for each in repairs),
            *(
                partial(self._add_expectation, branch, task, verdict)
                for task, verdict in found
                if verdict.expectation
            ),
        ]

    def _identity(self, base: str, commit: str) -> str:
        return patches.patch_id(self._repo, base, commit)

    def _size(self, base: str, commit: str) -> tuple[int, int]:
        return patches.size(self._repo, base, commit)

    # held for review

    def _keep(self, held: Sequence[tuple[Task, Verdict]]) -> None:
        """Each as one commit, which `git cherry-pick` takes."""
        for task, verdict in held:
            base = ranking.base_of(task)
            tree = self._repo.line("rev-parse", f"{base}^{{tree}}")
            for part in (verdict.implementation or verdict.expectation, verdict.other):
                laid = patches.picked(self._repo, self._folder, tree, base, part) if part else tree
                assert isinstance(laid, str), "parts of one change have no path in common"
                tree = laid
            subject, body = messages.held(task)
            commit = patches.commit(self._repo, tree, [base], f"{subject}\n\n{body}\n")
            self._repo.git("update-ref", ranking.held_ref(self._run, task), commit)

    # tests and documents

    def _add_others(self, branch: Branch) -> None:
        parts = self._standing_alone()
        kept, tree = self._settled(branch, [], parts, ask=False)
        # Only now is it known what is really in the way of those that did not go on.
        missed = [part for part in parts if part not in kept and not self._is_evicted(part)]
        if missed:
            kept, tree = self._settled(branch, kept, missed, ask=True)
        for part in missed:
            if part not in kept:
                self._evict_part(part, "conflicts with other changes")
        if not kept:
            return
        subject, body = messages.others(
            self._run, [part.tasks for part in kept], self._gate.shaky(tree)
        )
        branch.claimed |= {test for part in kept for test in _claims(part)}
        self._pick(branch, "other", _task_ids(kept), tree, subject, body, 0.0)

    def _standing_alone(self) -> list[Part]:
        groups: dict[str, list[tuple[Task, Verdict]]] = {}
        for task, verdict in ranking.accepted(self._run):
            if verdict.other and not verdict.together:
                key = self._identity(ranking.base_of(task), verdict.other)
                groups.setdefault(key, []).append((task, verdict))
        return [
            Part(tuple(task for task, _ in group), group[0][1], ranking.base_of(group[0][0]))
            for group in groups.values()
        ]

    def _settled(
        self, branch: Branch, kept: list[Part], parts: Sequence[Part], *, ask: bool
    ) -> tuple[list[Part], str]:
        """What can be kept of the parts and passes the gate; what breaks something is evicted."""
        tree, applied = self._laid(branch, [*kept, *parts], ask=ask)
        fresh = [part for part in applied if part not in kept]
        if not fresh:
            return kept, tree
        claimed = branch.claimed | {test for part in applied for test in _claims(part)}
        failing = self._gate.failing(tree, claimed)
        if not failing:
            return applied, tree
        if len(fresh) == 1:
            self._evict_part(fresh[0], f"breaks {_few(failing)}")
            tree, _ = self._laid(branch, kept, ask=ask)
            return kept, tree
        middle = len(fresh) // 2
        kept, _ = self._settled(branch, kept, fresh[:middle], ask=ask)
        return self._settled(branch, kept, fresh[middle:], ask=ask)

    def _laid(self, branch: Branch, parts: Sequence[Part], *, ask: bool) -> tuple[str, list[Part]]:
        """The tree with the parts on top of each other, and those that went on."""
        applied: list[Part] = []
        tree = self._repo.line("rev-parse", f"{branch.tip}^{{tree}}")
        for part in parts:
            result = patches.picked(self._repo, self._folder, tree, part.base, part.commit)
            if not isinstance(result, str):
                task = part.tasks[0].id
                known = (tree, part.commit) in self._answers
                result = (
                    self._resolved(tree, part.base, part.commit, result, task)
                    if ask or known
                    else ""
                )
            if result:
                tree = result
                applied.append(part)
        return tree, applied

    def _is_evicted(self, part: Part) -> bool:
        return any((task.id, "other") in self._evicted for task in part.tasks)

    def _evict_part(self, part: Part, reason: str) -> None:
        for task in part.tasks:
            self._evict(task.id, "other", reason, part.commit)

    # repairs

    def _add_repair(self, branch: Branch, repair: Repair) -> None:
        # The repair's own tests cannot be claimed before their changes are there too.
        claimed = branch.claimed | set(repair.turned_green)
        if self._is_held(repair.task) and self._passes(branch, claimed):
            self._evict_repair(repair, "its tests pass without it", needless=True)
            return
        tree = self._repaired(branch, repair)
        if not tree:
            return
        failing = self._gate.failing(tree, claimed)
        if failing:
            self._evict_repair(repair, f"breaks {_few(failing)}")
            return
        if tree == self._repo.line("rev-parse", f"{branch.tip}^{{tree}}"):
            told = "nothing is left of it after the changes before it"
            self._evict_repair(repair, told, needless=True)
            return
        branch.claimed = claimed
        subject, body = messages.repair(self._run, repair, self._gate.shaky(tree))
        tasks = repair.tasks
        self._pick(branch, "implementation", tasks, tree, subject, body, repair.score)

    def _is_held(self, task_id: str) -> bool:
        return self._run.tasks[task_id].held is not None

    def _passes(self, branch: Branch, claimed: set[str]) -> bool:
        tree = self._repo.line("rev-parse", f"{branch.tip}^{{tree}}")
        return not self._gate.failing(tree, claimed)

    def _repaired(self, branch: Branch, repair: Repair) -> str:
        """The tree with the repair and the test changes that need it; nothing on a conflict."""
        tip = self._repo.line("rev-parse", f"{branch.tip}^{{tree}}")
        changes = [(repair.base, repair.implementation)]
        for task_id in repair.tasks:
            verdict = self._run.tasks[task_id].verdict
            whole = verdict is not None and (verdict.together or self._is_held(task_id))
            if verdict is not None and whole and verdict.other:
                changes.append((ranking.base_of(self._run.tasks[task_id]), verdict.other))
        seen: set[str] = set()
        for base, commit in changes:
            identity = self._identity(base, commit)
            if identity in seen:
                continue
            seen.add(identity)
            result = patches.picked(self._repo, self._folder, tip, base, commit)
            if not isinstance(result, str):
                result = self._resolved(tip, base, commit, result, repair.task)
            if not result:
                self._evict_repair(repair, "conflicts with changes before it")
                return ""
            tip = result
        return tip

    def _evict_repair(self, repair: Repair, reason: str, *, needless: bool = False) -> None:
        for task_id in repair.tasks:
            commit = repair.implementation
            self._evict(task_id, "implementation", reason, commit, needless=needless)

    # expectations

    def _add_expectation(self, branch: Branch, task: Task, verdict: Verdict) -> None:
        tree = self._repo.line("rev-parse", f"{branch.tip}^{{tree}}")
        base, commit = ranking.base_of(task), verdict.expectation
        if task.held and self._passes(branch, branch.claimed | {task.node_id}):
            self._evict(task.id, "expectation", "its test passes without it", commit, needless=True)
            return
        result = patches.picked(self._repo, self._folder, tree, base, commit)
        if not isinstance(result, str):
            result = self._resolved(tree, base, commit, result, task.id)
        if not result or result == tree:
            why = "nothing is left of it" if result else "conflicts with changes before it"
            self._evict(task.id, "expectation", why, commit, needless=bool(result))
            return
        claimed = branch.claimed | {task.node_id, *verdict.tests_changed, *verdict.tests_added}
        failing = self._gate.failing(result, claimed)
        if failing:
            self._evict(task.id, "expectation", f"breaks {_few(failing)}", commit)
            return
        branch.claimed = claimed
        subject, body = messages.expectation(self._run, task, self._gate.shaky(result))
        self._pick(branch, "expectation", [task.id], result, subject, body, 0.0)

    # all of them

    def _resolved(self, tree: str, base: str, part: str, paths: Sequence[str], task_id: str) -> str:
        """Asked once for the same two, however often they are laid on each other."""
        if (tree, part) not in self._answers:
            self._note("conflict", {"text": f"{task_id}: {', '.join(paths[:5])}"})
            self._answers[tree, part] = self._resolve(tree, base, part, paths)
        return self._answers[tree, part]

    def _evict(
        self, task_id: str, part: str, reason: str, commit: str, *, needless: bool = False
    ) -> None:
        if (task_id, part) in self._evicted:
            return
        self._evicted.add((task_id, part))
        ref = f"refs/mngr/tmr/{self._run.name}/evicted/{task_id}/{part}"
        self._repo.git("update-ref", ref, commit)
        eviction = Eviction(task_id, part, reason, ref, needless)
        self._note("evicted", {"eviction": to_json(eviction)})

    def _pick(
        self,
        branch: Branch,
        kind: str,
        tasks: Sequence[str],
        tree: str,
        subject: str,
        body: str,
        score: float,
    ) -> None:
        commit = patches.commit(self._repo, tree, [branch.tip], f"{subject}\n\n{body}\n")
        branch.tip = commit
        keep = f"refs/mngr/tmr/{self._run.name}/branch"
        self._repo.git("update-ref", keep, commit)
        pick = Pick(kind, tuple(tasks), commit, tree, subject, score)
        self._note("picked", {"pick": to_json(pick)})


def _claims(part: Part) -> set[str]:
    """Its own test too, unless that waits for an implementation that is not there yet."""
    verdict = part.verdict
    if verdict.expectation:
        return set()  # its test passes only with the commit that comes last
    own = {task.node_id for task in part.tasks if task.verdict and not task.verdict.implementation}
    return {*own, *verdict.tests_changed, *verdict.tests_added}


def _task_ids(parts: Sequence[Part]) -> list[str]:
    return [task.id for part in parts for task in part.tasks]


def _few(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - 2} more" if len(tests) > 2 else ""
    return ", ".join(tests[:2]) + more
