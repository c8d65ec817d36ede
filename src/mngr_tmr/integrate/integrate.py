"""From accepted changes to one linear branch that passes its gate at every commit, with git.

First one commit with all independent test and documentation changes, then the fixes by rank, then
each changed expectation in its own commit, for a person to decide. Changes held for review are kept
as refs, or come last if the user requested them. A test change that expects the defect which a fix
removes is evicted, and integration starts again. It always starts from the base and depends only on
the verdicts, so a repetition gives the same trees and messages. The journal has the result of each
gate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mngr.api import Repo
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.integrate import messages, ranking
from mngr_tmr.integrate.gate import Gate
from mngr_tmr.integrate.ranking import Part, Repair
from mngr_tmr.journal.model import Eviction, Pick, Run, Task, Verdict
from mngr_tmr.run.words import few
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench

Resolve = Callable[[str, str, str, Sequence[str]], str]
"""(tip, base, part, paths) -> a tree with the conflict resolved, or """ ""


@dataclass
class Branch:
    """The branch so far, and the tests that it claims."""

    tip: str
    claimed: set[str] = field(default_factory=set)
    others: list[Part] = field(default_factory=list)
    """The changes of tests and documents in its first commit."""


class Integration:
    def __init__(
        self, run: Run, repo: Repo, bench: Bench, folder: Path, note: Note, resolve: Resolve
    ) -> None:
        self._run, self._repo = run, repo
        self._folder, self._note, self._resolve = folder, note, resolve
        self._evicted: set[tuple[str, str]] = set()
        """(task, part)"""
        self._contradicted: dict[str, str] = {}
        """Commits of test changes that contradict a fix, each with the reason."""
        self._gate = Gate(run, repo, bench, note)
        self._answers: dict[tuple[str, str], str] = {}

    def integrate(self) -> None:
        """Build the branch from the accepted changes, a commit per step."""
        cancelled = self._run.cancelled
        while not self._built(cancelled=cancelled):
            pass  # without the test changes that contradict a fix

    def _built(self, *, cancelled: bool) -> bool:
        """Build the branch; return whether it is complete, and False to start again."""
        contradicted = len(self._contradicted)
        self._evicted.clear()
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
                break  # the run was cancelled; the commits so far passed their gates
            step()
            if len(self._contradicted) > contradicted:
                return False
        return True

    def _steps(
        self, branch: Branch, found: Sequence[tuple[Task, Verdict]]
    ) -> list[Callable[[], None]]:
        repairs = ranking.repairs(found, self._identity, partial(patches.size, self._repo))
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

    # held for review

    def _keep(self, held: Sequence[tuple[Task, Verdict]]) -> None:
        """Keep each held change as one commit, for `git cherry-pick`."""
        for task, verdict in held:
            base = ranking.base_of(task)
            tree = self._repo.line("rev-parse", f"{base}^{{tree}}")
            for part in (verdict.implementation or verdict.expectation, verdict.other):
                laid = patches.picked(self._repo, self._folder, tree, base, part) if part else tree
                assert isinstance(laid, str), "parts of one change have no path in common"
                tree = laid
            message = "{}\n\n{}\n".format(*messages.held(task))
            commit = patches.commit(self._repo, tree, [base], message)
            self._repo.git("update-ref", ranking.held_ref(self._run, task), commit)

    # tests and documents

    def _add_others(self, branch: Branch) -> None:
        parts = []
        for part in self._standing_alone():
            if reason := self._contradicted.get(part.commit):
                self._evict_part(part, reason)
            else:
                parts.append(part)
        kept, tree = self._settled(branch, [], parts, ask=False)
        # Only now is it known which changes conflict with those that were not applied.
        missed = [
            part
            for part in parts
            if part not in kept and (part.tasks[0].id, "other") not in self._evicted
        ]
        if missed:
            kept, tree = self._settled(branch, kept, missed, ask=True)
        for part in missed:
            if part not in kept:
                self._evict_part(part, "conflicts with other changes")
        if not kept:
            return
        branch.others = kept
        branch.claimed |= {test for part in kept for test in part.claims}
        groups = [part.tasks for part in kept]
        tasks = [task.id for group in groups for task in group]
        message = messages.others(groups, self._run.gate(tree).unsteady)
        self._pick(branch, "other", tasks, tree, message)

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
        """Return the parts that pass the gate, and their tree; evict those that break a test."""
        tree, applied = self._laid(branch, [*kept, *parts], ask=ask)
        fresh = [part for part in applied if part not in kept]
        if not fresh:
            return kept, tree
        claimed = branch.claimed | {test for part in applied for test in part.claims}
        failing = self._gate.failing(tree, claimed)
        if not failing:
            return applied, tree
        if len(fresh) == 1:
            self._evict_part(fresh[0], f"breaks {few(failing, 2)}")
            tree, _ = self._laid(branch, kept, ask=ask)
            return kept, tree
        middle = len(fresh) // 2
        kept, _ = self._settled(branch, kept, fresh[:middle], ask=ask)
        return self._settled(branch, kept, fresh[middle:], ask=ask)

    def _laid(self, branch: Branch, parts: Sequence[Part], *, ask: bool) -> tuple[str, list[Part]]:
        """Return the tree with the parts applied, and the parts that did not conflict."""
        applied: list[Part] = []
        tree = self._tree(branch)
        for part in parts:
            known = (tree, part.commit) in self._answers
            result = self._picked(tree, part.base, part.commit, part.tasks[0].id, ask or known)
            if result:
                tree = result
                applied.append(part)
        return tree, applied

    def _evict_part(self, part: Part, reason: str) -> None:
        self._evict([task.id for task in part.tasks], "other", reason, part.commit)

    # fixes

    def _add_repair(self, branch: Branch, repair: Repair) -> None:
        # The fix's own tests cannot be claimed before their changes are on the branch.
        claimed = branch.claimed | {*repair.turned_green, *repair.added}
        if self._is_held(repair.task) and self._passes(branch, claimed):
            self._evict_repair(repair, "its tests pass without it", needless=True)
            return
        tree = self._repaired(branch, repair)
        if not tree:
            return
        failing = self._gate.failing(tree, claimed)
        proven = not self._is_held(
            repair.task
        )  # a held change may be wrong, so it evicts no test change
        if failing and proven and self._contradiction(branch, repair, tree, claimed, failing):
            return
        if failing:
            self._evict_repair(repair, f"breaks {few(failing, 2)}")
            return
        if tree == self._tree(branch):
            reason = "earlier changes on the branch already include it"
            self._evict_repair(repair, reason, needless=True)
            return
        branch.claimed = claimed
        message = messages.repair(self._run, repair, self._run.gate(tree).unsteady)
        self._pick(branch, "implementation", repair.tasks, tree, message, repair.score)

    def _contradiction(
        self, branch: Branch, repair: Repair, tree: str, claimed: set[str], failing: Sequence[str]
    ) -> bool:
        """Return whether the fix breaks only tests that this run changed; note these changes.

        A fix is proven by the tests of the project. An agent that extends a test at the same time
        may have recorded the defect as the expected result.
        """
        against = [part for part in branch.others if part.asserts & {*failing}]
        if not {*failing} <= {test for part in against for test in part.asserts}:
            return False
        for part in against:
            tree = self._picked(tree, part.commit, part.base, repair.task, ask=False)
            if not tree:
                return False
        added = {test for part in against for test in part.verdict.tests_added}
        if self._gate.failing(tree, claimed - added):
            return False
        mended = few(repair.turned_green, 1)
        for part in against:
            self._contradicted[part.commit] = f"contradicts the fix of {mended}"
        return True

    def _is_held(self, task_id: str) -> bool:
        return self._run.tasks[task_id].held is not None

    def _passes(self, branch: Branch, claimed: set[str]) -> bool:
        return not self._gate.failing(self._tree(branch), claimed)

    def _repaired(self, branch: Branch, repair: Repair) -> str:
        """Return the tree with the fix and the test changes that require it; "" on a conflict."""
        tree = self._tree(branch)
        changes = [(repair.base, repair.implementation)]
        for task_id in repair.tasks:
            verdict = self._run.tasks[task_id].verdict
            whole = verdict is not None and (verdict.together or self._is_held(task_id))
            if verdict is not None and whole and verdict.other:
                changes.append((ranking.base_of(self._run.tasks[task_id]), verdict.other))
        distinct: dict[str, tuple[str, str]] = {}
        for each in changes:
            distinct.setdefault(self._identity(*each), each)
        for base, commit in distinct.values():
            tree = self._picked(tree, base, commit, repair.task)
            if not tree:
                self._evict_repair(repair, "conflicts with earlier changes")
                return ""
        return tree

    def _evict_repair(self, repair: Repair, reason: str, *, needless: bool = False) -> None:
        commit = repair.implementation
        self._evict(repair.tasks, "implementation", reason, commit, needless=needless)

    # expectations

    def _add_expectation(self, branch: Branch, task: Task, verdict: Verdict) -> None:
        def evict(reason: str, *, needless: bool = False) -> None:
            commit = verdict.expectation
            self._evict([task.id], "expectation", reason, commit, needless=needless)

        if task.held and self._passes(branch, branch.claimed | {task.node_id}):
            evict("its test passes without it", needless=True)
            return
        before = self._tree(branch)
        tree = self._picked(before, ranking.base_of(task), verdict.expectation, task.id)
        if not tree or tree == before:
            why = (
                "earlier changes on the branch already include it"
                if tree
                else "conflicts with earlier changes"
            )
            evict(why, needless=bool(tree))
            return
        claimed = branch.claimed | {task.node_id, *verdict.tests_changed, *verdict.tests_added}
        failing = self._gate.failing(tree, claimed)
        if failing:
            evict(f"breaks {few(failing, 2)}")
            return
        branch.claimed = claimed
        message = messages.expectation(task, self._run.gate(tree).unsteady)
        self._pick(branch, "expectation", [task.id], tree, message)

    # all of them

    def _tree(self, branch: Branch) -> str:
        return self._repo.line("rev-parse", f"{branch.tip}^{{tree}}")

    def _picked(self, tree: str, base: str, part: str, task_id: str, ask: bool = True) -> str:
        """Return the tree with base..part applied; "" on a conflict that is not resolved.

        The integrator is asked only once about the same tree and part.
        """
        result = patches.picked(self._repo, self._folder, tree, base, part)
        if isinstance(result, str):
            return result
        if ask and (tree, part) not in self._answers:
            self._note("conflict", {"text": f"{task_id}: {', '.join(result[:5])}"})
            self._answers[tree, part] = self._resolve(tree, base, part, result)
        return self._answers[tree, part] if ask else ""

    def _pick(
        self,
        branch: Branch,
        kind: str,
        tasks: Sequence[str],
        tree: str,
        message: tuple[str, str],
        score: float = 0.0,
    ) -> None:
        """Add a commit; its message is a subject and a body."""
        subject, body = message
        branch.tip = patches.commit(self._repo, tree, [branch.tip], f"{subject}\n\n{body}\n")
        self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/branch", branch.tip)
        pick = Pick(kind, tuple(tasks), branch.tip, tree, subject, score)
        self._note("picked", {"pick": to_json(pick)})

    def _evict(
        self, tasks: Iterable[str], part: str, reason: str, commit: str, *, needless: bool = False
    ) -> None:
        """Journal the eviction of a change of these tasks, and keep its commit as a ref."""
        for task_id in tasks:
            if (task_id, part) not in self._evicted:
                self._evicted.add((task_id, part))
                ref = f"refs/mngr/tmr/{self._run.name}/evicted/{task_id}/{part}"
                self._repo.git("update-ref", ref, commit)
                eviction = Eviction(task_id, part, reason, ref, needless)
                self._note("evicted", {"eviction": to_json(eviction)})
