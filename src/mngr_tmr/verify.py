"""Verification: what an agent claims counts for nothing until it was seen here.

On the task's base the agent's range is cut by path into an implementation part and the rest, and
each part has to earn its place in a clean checkout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mngr.git import Repo
from mngr_tmr import assertions, patches
from mngr_tmr.bench import Bench, Check, Checked
from mngr_tmr.model import Ended, Proof, Ruling, Run, Task, Try, Verdict
from mngr_tmr.settings import Project

SIZE_LIMIT = 1 << 20


@dataclass
class Case:
    """One try under verification, and what was found out so far."""

    task: Task
    each: Try
    ended: Ended
    proofs: list[Proof] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return self.each.base

    @property
    def head(self) -> str:
        return self.ended.head


class Refusal(Exception):
    """Why the work is not taken."""


@dataclass(frozen=True)
class Touched:
    """Tests that a range changes or adds, and why it makes one weaker, if it does."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    weaker: str = ""
    without_commands: tuple[str, ...] = ()


class RealInspector:
    def __init__(self, run: Run, repo: Repo, bench: Bench, project: Project, folder: Path) -> None:
        self._run, self._repo, self._bench = run, repo, bench
        self._project, self._folder = project, folder

    # the front

    def verify(self, task: Task, each: Try) -> Verdict:
        assert each.ended is not None
        case = Case(task, each, each.ended)
        try:
            return self._verified(case)
        except Refusal as refusal:
            return self._verdict(case, Ruling.REFUSED, str(refusal))

    def released_base(self, canary: Task, verdict: Verdict) -> str:
        """Only its fix: whether the canary's test changes are any good is not said yet."""
        return verdict.implementation

    def passes(self, node_id: str, commit: str) -> bool:
        return self._bench.check(Check("after the canary's fix", commit, (node_id,))).passed(
            [node_id]
        )

    def _verdict(self, case: Case, ruling: Ruling, reason: str) -> Verdict:
        remarks, proofs = tuple(case.remarks), tuple(case.proofs)
        return Verdict(ruling, reason, remarks=remarks, proofs=proofs)

    # one thing after another, cheap ones first

    def _verified(self, case: Case) -> Verdict:
        self._refuse_strange(case)
        implementation, other = self._split(case)
        if not implementation and not other:
            return self._nothing_needed(case)
        touched = self._touched(case, other)
        if touched.weaker:
            raise Refusal(touched.weaker)
        claimed = [case.task.node_id, *touched.added]
        self._passes(case, claimed)
        self._fails_as_no_op(case, touched)
        together = False
        if implementation:
            implementation, together = self._earned(case, implementation, other)
        if not implementation and not other:
            raise Refusal("its implementation changes are not needed by its test")
        turned_green = self._turned_green(case) if implementation else ()
        return replace(
            self._verdict(case, Ruling.ACCEPTED, "verified"),
            implementation=implementation,
            other=other,
            together=together and bool(other),
            turned_green=turned_green,
            tests_changed=touched.changed,
            tests_added=touched.added,
        )

    def _refuse_strange(self, case: Case) -> None:
        if not patches.descends(self._repo, case.base, case.head):
            raise Refusal("its commits do not build on the commit it was given")
        found = patches.changes(self._repo, case.base, case.head)
        forbidden = [each.path for each in found if self._project.is_forbidden(each.path)]
        if forbidden:
            raise Refusal(f"changes forbidden paths: {', '.join(forbidden[:5])}")
        odd = [each.path for each in found if patches.odd(each)]
        if odd:
            raise Refusal(f"adds links or submodules: {', '.join(odd[:5])}")
        for each in found:
            if each.new_mode != patches.GONE and self._size(each.new_blob) > SIZE_LIMIT:
                raise Refusal(f"adds a file larger than 1 MiB: {each.path}")

    def _size(self, blob: str) -> int:
        return int(self._repo.line("cat-file", "-s", blob))

    def _split(self, case: Case) -> tuple[str, str]:
        is_implementation = self._project.is_implementation
        subject = (case.ended.summary or case.task.node_id).splitlines()[0][:72]
        return (
            self._only(case, "implementation", is_implementation, subject),
            self._only(case, "other", lambda path: not is_implementation(path), subject),
        )

    def _only(self, case: Case, part: str, keep: Callable[[str], bool], subject: str) -> str:
        self._folder.mkdir(parents=True, exist_ok=True)
        commit = patches.only(self._repo, self._folder, case.base, case.head, keep, subject)
        if commit:  # kept from git's own cleaning until the branch, or nobody, has it
            name = f"{case.task.id}/{case.each.number}/{part}"
            self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/parts/{name}", commit)
        return commit

    def _nothing_needed(self, case: Case) -> Verdict:
        """No change is success, if the test indeed passes."""
        if case.task.want == "fix":
            self._passes(case, [case.task.node_id])
        return self._verdict(case, Ruling.UNCHANGED, "nothing needed to change")

    # tests

    def _touched(self, case: Case, other: str) -> Touched:
        """By function: a change elsewhere in a test file is left to the gate."""
        changed: list[str] = []
        added: list[str] = []
        silent: list[str] = []
        weaker = ""
        for each in patches.changes(self._repo, case.base, other) if other else ():
            if not each.path.endswith(".py"):
                continue
            old = patches.show(self._repo, case.base, each.path) or ""
            new = patches.show(self._repo, case.head, each.path) or ""
            weaker = weaker or self._weaker(each.path, old, new)
            names, fresh = assertions.changed_tests(old, new)
            after = assertions.functions(new)
            quiet = [n for n in (*names, *fresh) if not assertions.runs_commands(after[n])]
            silent += [f"{each.path}::{name}" for name in quiet]
            changed += [f"{each.path}::{name}" for name in names]
            added += [f"{each.path}::{name}" for name in fresh]
        own = case.task.node_id.partition("::")[0]
        strays = [each for each in added if each.partition("::")[0] != own]
        if strays:
            raise Refusal(f"adds tests outside its test's file: {', '.join(strays[:3])}")
        return Touched(tuple(changed), tuple(added), weaker, tuple(silent))

    def _weaker(self, path: str, old: str, new: str) -> str:
        removed = assertions.removed_tests(old, new)
        if removed:
            return f"removes the test {path}::{removed[0]}"
        before, after = assertions.functions(old), assertions.functions(new)
        for name, function in before.items():
            if name in after and not assertions.same(function, after[name]):
                why = assertions.weaker(function, after[name])
                if why:
                    return f"{path}::{name}: {why}"
        return ""

    def _passes(self, case: Case, tests: Sequence[str]) -> None:
        for _ in range(max(1, self._run.options.repeats)):
            checked = self._check(case, Check("with its work", case.head, self._exact(tests)))
            for each in tests:
                outcome = _outcome(checked, each)
                if outcome != "passed":
                    raise Refusal(_failure(checked, each, outcome))

    def _exact(self, tests: Sequence[str]) -> tuple[str, ...]:
        """A changed function may stand for many parametrised tests: run its whole file then."""
        return (
            tuple(tests) if all(each in self._run.tests for each in tests) else self._files(tests)
        )

    def _files(self, tests: Sequence[str]) -> tuple[str, ...]:
        files = {each.partition("::")[0] for each in tests}
        known = [each for each in self._run.tests if each.partition("::")[0] in files]
        return tuple(dict.fromkeys([*known, *tests]))

    def _fails_as_no_op(self, case: Case, touched: Touched) -> None:
        exempt = set(touched.without_commands)
        tests = [each for each in (*touched.changed, *touched.added) if each not in exempt]
        if exempt:
            case.remarks.append(f"runs no command, so no no-op was tried: {sorted(exempt)[0]}")
        if not tests:
            return
        check = Check("with commands that do nothing", case.head, self._files(tests), noop=True)
        checked = self._check(case, check)
        for each in tests:
            if _outcome(checked, each) == "passed":
                raise Refusal(f"{each} passes also when the commands do nothing")

    # implementation

    def _earned(self, case: Case, implementation: str, other: str) -> tuple[str, bool]:
        """The patch turns red into green, or it is left out; and whether the rest needs it."""
        node_id = case.task.node_id
        without = other or case.base
        checked = self._check(case, Check("without its implementation", without, (node_id,)))
        if checked.outcome(node_id) != "passed":
            return implementation, _changes_test(self._repo, case, other)
        if other:
            case.remarks.append("its implementation changes are not needed by its test: left out")
            return "", False
        return "", False

    def _turned_green(self, case: Case) -> tuple[str, ...]:
        red = [
            each
            for each, baseline in self._run.baseline.items()
            if baseline.standing in ("failed", "flaky")
        ]
        tests = tuple(dict.fromkeys([case.task.node_id, *red]))
        checked = self._check(case, Check("what it turns green", case.head, tests))
        return tuple(each for each in tests if checked.outcome(each) == "passed")

    def _check(self, case: Case, check: Check) -> Checked:
        checked = self._bench.check(check)
        case.proofs.append(checked.proof)
        if checked.errors:
            raise Refusal(f"it does not collect: {checked.errors[0]}")
        return checked


def _outcome(checked: Checked, test: str) -> str:
    """Of a test, or of all that one function stands for."""
    runs = [run for node, run in checked.runs.items() if node.partition("[")[0] == test]
    if test in checked.runs:
        return checked.runs[test].outcome
    if not runs:
        return "missing"
    return next((run.outcome for run in runs if run.outcome != "passed"), "passed")


def _failure(checked: Checked, test: str, outcome: str) -> str:
    run = checked.runs.get(test)
    if run is None or not run.message:
        return f"{test} is {outcome} with its work"
    first = run.message.strip().splitlines()[0][:200] if run.message.strip() else ""
    return f"{test} is {outcome} with its work: {run.exception}: {first}"


def _changes_test(repo: Repo, case: Case, other: str) -> bool:
    """Whether the rest touches the very file of the test that needs the implementation."""
    if not other:
        return False
    file = case.task.node_id.partition("::")[0]
    return any(each.path == file for each in patches.changes(repo, case.base, other))
