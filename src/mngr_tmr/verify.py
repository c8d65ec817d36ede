"""Verification: what an agent claims counts for nothing until it was seen here.

On the task's base the agent's range is cut by path into an implementation part and the rest, and
each part has to earn its place in a clean checkout.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mngr.git import Repo
from mngr.outcome import cleaned
from mngr_tmr import assertions, judges, patches
from mngr_tmr.bench import Bench, Check, Checked
from mngr_tmr.model import Baseline, Ended, Proof, Ruling, Run, Task, Try, Verdict
from mngr_tmr.settings import Project
from mngr_tmr.weakening import weaker

SIZE_LIMIT = 1 << 20
REASON_LIMIT = 2000


@dataclass
class Case:
    """One try under verification, and what was found out so far."""

    task: Task
    each: Try
    ended: Ended
    proofs: list[Proof] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    artifacts: str = ""

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
    without_commands: tuple[str, ...] = ()
    around: tuple[str, ...] = ()
    """Files in which something else than the body of a test differs."""

    @property
    def tests(self) -> tuple[str, ...]:
        return (*self.changed, *self.added)


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
            return self._verdict(case, Ruling.REFUSED, cleaned(str(refusal), REASON_LIMIT))

    def _verdict(self, case: Case, ruling: Ruling, reason: str) -> Verdict:
        remarks, proofs = tuple(case.remarks), tuple(case.proofs)
        return Verdict(ruling, reason, remarks=remarks, proofs=proofs, artifacts=case.artifacts)

    # one thing after another, cheap ones first

    def _verified(self, case: Case) -> Verdict:
        self._refuse_strange(case)
        implementation, other = self._split(case)
        if not implementation and not other:
            return self._nothing_needed(case)
        touched = self._touched(case, other)
        self._passes(case, [case.task.node_id, *touched.tests])
        self._fails_as_no_op(case, touched)
        green: tuple[str, ...] = ()
        together = False
        if implementation:
            green, together = self._earned(case, touched, other)
        if not green and not other:
            raise Refusal("its implementation changes are not needed by its test")
        if implementation and not green:
            case.remarks.append("its implementation changes are not needed by its test: left out")
        return replace(
            self._verdict(case, Ruling.ACCEPTED, "verified"),
            implementation=implementation if green else "",
            other=other,
            together=together,
            turned_green=green,
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
        for each in found:
            old, new = (patches.show(self._repo, c, each.path) for c in (case.base, case.head))
            why = judges.changed_judge(each.path, old, new)
            if why:
                raise Refusal(why)
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
        """No change is success, if the test indeed passes and did so from the start."""
        if case.task.want == "fix":
            self._passes(case, [case.task.node_id])
            self._refuse_luck(case)
        return self._verdict(case, Ruling.UNCHANGED, "nothing needed to change")

    def _refuse_luck(self, case: Case) -> None:
        """It passes, but failed before on the very same files: that is not over."""
        before = self._run.baseline.get(case.task.node_id, Baseline()).runs
        failed = sum(1 for each in before if each.outcome == "failed")
        if failed and case.base == self._run.base:
            told = f"it failed in {failed} of {len(before)} runs before any agent"
            raise Refusal(f"{told}, and passes now although nothing was changed")

    # tests

    def _touched(self, case: Case, other: str) -> Touched:
        """By function; what stands around the tests of a file is told apart."""
        changed: list[str] = []
        added: list[str] = []
        silent: list[str] = []
        around: list[str] = []
        for each in patches.changes(self._repo, case.base, other) if other else ():
            if not each.path.endswith(".py"):
                continue
            old = patches.show(self._repo, case.base, each.path) or ""
            new = patches.show(self._repo, case.head, each.path) or ""
            _refuse_less(each.path, old, new)
            names, fresh = assertions.changed_tests(old, new)
            after = assertions.functions(new)
            quiet = [n for n in (*names, *fresh) if not assertions.runs_commands(after[n])]
            silent += [f"{each.path}::{name}" for name in quiet]
            changed += [f"{each.path}::{name}" for name in names]
            added += [f"{each.path}::{name}" for name in fresh]
            around += [each.path] if assertions.changes_around(old, new) else []
        own = case.task.node_id.partition("::")[0]
        strays = [each for each in added if each.partition("::")[0] != own]
        if strays:
            raise Refusal(f"adds tests outside its test's file: {', '.join(strays[:3])}")
        return Touched(tuple(changed), tuple(added), tuple(silent), tuple(around))

    def _passes(self, case: Case, tests: Sequence[str]) -> None:
        # Not below the folder of what came from the agent, who could put something there itself.
        case.artifacts = f"verified/{case.task.id}/{case.each.number}"
        check = Check("with its work", case.head, tuple(tests), keep=case.artifacts)
        for _ in range(max(1, self._run.options.repeats)):
            checked = self._check(case, check)
            if checked.timed_out:
                raise Refusal(f"with its work no end after {self._project.check_timeout} s")
            for each in tests:
                outcome = _outcome(checked, each)
                if outcome != "passed":
                    raise Refusal(_failure(checked, each, outcome))

    def _fails_as_no_op(self, case: Case, touched: Touched) -> None:
        exempt = set(touched.without_commands)
        tests = [each for each in touched.tests if each not in exempt]
        if exempt:
            case.remarks.append(f"runs no command, so no no-op was tried: {sorted(exempt)[0]}")
        tests += self._near(case, touched)
        if not tests:
            return
        what = "with commands that do nothing"
        checked = self._check(case, Check(what, case.head, tuple(tests), noop=True))
        for each in tests:
            if _outcome(checked, each) == "passed":
                raise Refusal(f"{each} passes also when the commands do nothing")

    def _near(self, case: Case, touched: Touched) -> list[str]:
        """Tests that stand on changed code, and that noticed before when commands did nothing."""
        folders = {os.path.dirname(path) for path in touched.around}
        near = [
            test
            for test in self._run.tests
            if any(not folder or test.startswith(f"{folder}/") for folder in folders)
            and test.partition("[")[0] not in touched.tests
        ]
        if not near:
            return []
        what = "before it, with commands that do nothing"
        checked = self._bench.check(Check(what, case.base, tuple(near), noop=True))
        case.proofs.append(checked.proof)
        return [each for each in near if checked.outcome(each) == "failed"]

    # implementation

    def _earned(self, case: Case, touched: Touched, other: str) -> tuple[tuple[str, ...], bool]:
        """The tests that the patch turns from red to green, and whether the rest needs it."""
        own = case.task.node_id
        tests = dict.fromkeys([own, *touched.tests])
        known = [n for n, each in self._run.baseline.items() if each.standing == "failed"]
        elsewhere = case.base != self._run.base
        before = self._bench.check(
            Check(
                "without its implementation",
                other or case.base,
                (*tests, *(known if elsewhere else ())),
            )
        )
        case.proofs.append(before.proof)
        red = [each for each in tests if before.errors or _outcome(before, each) != "passed"]
        if not red:
            return (), False
        more = [n for n in known if not elsewhere or before.outcome(n) != "passed"]
        wanted = tuple(dict.fromkeys([*red, *more]))
        after = self._check(case, Check("what it turns green", case.head, wanted))
        green = tuple(each for each in wanted if _outcome(after, each) == "passed")
        carried = (
            before.errors or set(red) & set(touched.tests) or _touches(self._repo, case, other)
        )
        return green, bool(other and carried)

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


def _touches(repo: Repo, case: Case, other: str) -> bool:
    """Whether the rest touches the very file of the test that needs the implementation."""
    if not other:
        return False
    file = case.task.node_id.partition("::")[0]
    return any(each.path == file for each in patches.changes(repo, case.base, other))


def _refuse_less(path: str, old: str, new: str) -> None:
    """A file of tests may not ask for less than before, nor choose its own judge."""
    removed = assertions.removed_tests(old, new)
    if removed:
        raise Refusal(f"removes the test {path}::{removed[0]}")
    hooks = assertions.changed_hooks(old, new)
    if hooks:
        raise Refusal(f"changes how pytest runs tests: {path}::{hooks[0]}")
    before, after = assertions.functions(old), assertions.functions(new)
    for name, function in before.items():
        if name in after and not assertions.same(function, after[name]):
            why = weaker(function, after[name])
            if why:
                raise Refusal(f"{path}::{name}: {why}")
