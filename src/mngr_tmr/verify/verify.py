"""Verification: nothing an agent says is believed, and what its change does is measured.

The change is cut by path into implementation, tests and documents, and each part is judged for
itself. A fix is the implementation part with the tests and the data of the base. What passes only
because a test was changed is a changed expectation, for a person to decide.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mngr.api import Repo
from mngr_outcome.outcome import cleaned
from mngr_tmr.journal.model import Baseline, Ruling, Run, Task, Try, Verdict
from mngr_tmr.run.clustering import Lines
from mngr_tmr.run.settings import Project
from mngr_tmr.verify import assertions, patches
from mngr_tmr.verify.bench import Bench, Check, Checked
from mngr_tmr.verify.cases import Case, Refusal, failure, function, outcome
from mngr_tmr.verify.companions import fails_otherwise, of_files
from mngr_tmr.verify.flags import Added, expected, flags
from mngr_tmr.verify.measuring import Measure
from mngr_tmr.verify.parts import Kind, Parts
from mngr_tmr.verify.strange import refuse_strange
from mngr_tmr.verify.testchange import Change, Taken, TestJudge

REASON_LIMIT = 2000
CONCERNED = 60.0
"""Seconds of other tests that run with a fix, of those known to need a file it changes."""
FLAKY = 3
"""A test that passes sometimes has to pass so many times as often."""
FIX = "with its fix, the tests as they were"
OTHERS = "other tests with its fix"


@dataclass(frozen=True)
class Split:
    """Commits on the base with one kind of changes each; nothing where there are none."""

    implementation: str = ""
    tests: str = ""
    documents: str = ""


@dataclass(frozen=True)
class Fix:
    commit: str = ""
    green: tuple[str, ...] = ()
    why: str = ""
    """Why it is none."""


class RealInspector:
    def __init__(
        self,
        run: Run,
        repo: Repo,
        bench: Bench,
        project: Project,
        folder: Path,
        needs: Mapping[str, frozenset[str]] | None = None,
        reached: Mapping[str, Lines] | None = None,
    ) -> None:
        """`needs` are the files that each test is known to need, `reached` the lines it ran."""
        self._run, self._repo, self._bench = run, repo, bench
        self._project, self._folder = project, folder
        self._needs, self._reached = needs or {}, reached or {}

    @cached_property
    def _parts(self) -> Parts:
        files = {test.file for test in self._run.tests.values()}
        return Parts(self._repo, self._run.base, self._project, files)

    @cached_property
    def _judge(self) -> TestJudge:
        measure = Measure(self._repo, self._bench)
        budget = float(self._project.mutant_seconds)
        return TestJudge(self._run, self._repo, self._parts, measure, budget)

    # the front

    def verify(self, task: Task, each: Try) -> Verdict:
        verdict = self._judged(task, each)
        return _held(verdict) if verdict.flags else verdict

    def _judged(self, task: Task, each: Try) -> Verdict:
        assert each.ended is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        case = Case(task, each, each.ended, self._bench, float(self._project.check_timeout))
        try:
            return self._verified(case)
        except Refusal as refusal:
            return self._verdict(case, Ruling.REFUSED, cleaned(str(refusal), REASON_LIMIT))

    def _verdict(self, case: Case, ruling: Ruling, reason: str) -> Verdict:
        remarks, proofs = tuple(case.remarks), tuple(case.proofs)
        return Verdict(ruling, reason, remarks=remarks, proofs=proofs, artifacts=case.artifacts)

    # one thing after another, cheap ones first

    def _verified(self, case: Case) -> Verdict:
        refuse_strange(self._repo, self._project, case.base, case.head)
        split = self._split(case)
        if split == Split():
            return self._nothing_needed(case)
        fix = self._fix(case, split.implementation)
        taken = self._tests(case, split, fix)
        if taken is not None and taken.expectation:
            return self._expectation(case, split, taken)
        other = self._other(case, split, taken)
        if not fix.commit and not other:
            raise Refusal(fix.why or "it changes nothing that its test needs")
        if case.task.want == "fix" and not fix.commit:
            raise Refusal(fix.why or "its test still fails: only documents are changed")
        if split.implementation and not fix.commit:
            case.remarks.append(f"left out: {fix.why}")
        changed = patches.changes(self._repo, case.base, fix.commit) if fix.commit else []
        alone = [each.path for each in changed if self._parts.only_tests_use(each.path)]
        case.remarks += [f"only tests seem to use {path}" for path in alone]
        return replace(
            self._verdict(case, Ruling.ACCEPTED, "verified"),
            implementation=fix.commit,
            other=other,
            together=bool(fix.commit and taken and taken.needs_fix),
            turned_green=self._turned_green(fix, taken),
            tests_changed=taken.touched.changed if taken else (),
            tests_added=taken.touched.added if taken else (),
            mutants=taken.mutants if taken else "",
            flags=self._flags(case, fix.commit),
        )

    def _turned_green(self, fix: Fix, taken: Taken | None) -> tuple[str, ...]:
        """With the tests that were added and are red without the fix."""
        added = taken.touched.added if taken and taken.needs_fix and fix.commit else ()
        return (*fix.green, *added)

    def _expectation(self, case: Case, split: Split, taken: Taken) -> Verdict:
        return replace(
            self._verdict(case, Ruling.ACCEPTED, "passes only because its expectation was changed"),
            expectation=taken.commit,
            other=split.documents,
            tests_changed=taken.touched.changed,
            tests_added=taken.touched.added,
            block=assertions.blocks(taken.touched.before[function(case.own)]).strip()[:4000],
            mutants=taken.mutants,
            flags=self._flags(case, taken.commit if taken.commit != split.tests else ""),
        )

    def _split(self, case: Case) -> Split:
        return Split(
            self._only(case, "implementation", Kind.IMPLEMENTATION),
            self._only(case, "tests", Kind.TEST),
            self._only(case, "documents", Kind.DOCUMENT),
        )

    def _only(self, case: Case, part: str, *kinds: Kind) -> str:
        subject = (case.ended.summary or case.own).splitlines()[0][:72]

        def keep(path: str) -> bool:
            return self._parts.kind(path) in kinds

        commit = patches.only(self._repo, self._folder, case.base, case.head, keep, subject)
        if commit:  # kept from git's own cleaning until the branch, or nobody, has it
            name = f"{case.task.id}/{case.each.number}/{part}"
            self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/parts/{name}", commit)
        return commit

    def _nothing_needed(self, case: Case) -> Verdict:
        """No change is success, if the test indeed passes and did so from the start."""
        if case.task.want == "fix":
            check = Check("without any change", case.head, (case.own,), keep=self._keep(case))
            for _ in range(max(1, self._run.options.repeats)):
                checked = case.check(check)
                if outcome(checked, case.own) != "passed":
                    raise Refusal(failure(checked, case.own, "without any change"))
            self._refuse_luck(case)
        return self._verdict(case, Ruling.UNCHANGED, "nothing needed to change")

    def _keep(self, case: Case) -> str:
        # Not below the folder of what came from the agent, which could put something there itself.
        case.artifacts = f"verified/{case.task.id}/{case.each.number}"
        return case.artifacts

    def _refuse_luck(self, case: Case) -> None:
        """It passes, but failed before on the very same files: that is not over."""
        before = self._run.baseline.get(case.own, Baseline()).runs
        failed = sum(1 for each in before if each.outcome == "failed")
        if failed and case.base == self._run.base:
            told = f"it failed in {failed} of {len(before)} runs before any agent"
            raise Refusal(f"{told}, and passes now although nothing was changed")

    # the fix

    def _fix(self, case: Case, implementation: str) -> Fix:
        """The implementation part alone has to turn the test green, and may break none."""
        if not implementation:
            return Fix()
        try:
            self._must_pass(case, implementation)
            red = self._red(case)
            if case.own not in red:
                return Fix(why="its implementation changes are not needed by its test")
            green = self._others(case, implementation, red)
        except Refusal as refusal:
            return Fix(why=str(refusal))
        return Fix(implementation, (case.own, *green))

    def _must_pass(self, case: Case, implementation: str) -> None:
        for _ in range(self._repeats(case)):
            checked = self._with_fix(case, implementation)
            if outcome(checked, case.own) != "passed":
                raise Refusal(failure(checked, case.own, FIX))

    def _with_fix(self, case: Case, implementation: str) -> Checked:
        """Its test by itself, or with the tests of its file if it needs one of them."""
        check = Check(FIX, implementation, case.session, keep=self._keep(case))
        checked = case.check(check)
        if case.companions or not fails_otherwise(self._run, case.own, checked.runs.get(case.own)):
            return checked
        case.companions = of_files(self._run, [case.own])
        together = case.check(replace(check, what=f"{FIX}, all of its file", tests=case.companions))
        if outcome(together, case.own) == "passed":
            case.remarks.append("its test passes only after other tests of its file")
        return together

    def _others(self, case: Case, implementation: str, red: list[str]) -> list[str]:
        """Other tests that it turns green, in the session that tells what it breaks."""
        concerned = self._concerned(case, implementation)
        failing = [each for each in red if each != case.own]
        if not concerned and not failing:
            return []
        after = case.check(Check(OTHERS, implementation, (*failing, *concerned)))
        broken = [each for each in concerned if outcome(after, each) != "passed"]
        self._refuse_broken(case, implementation, broken)
        told = replace(after.proof, finding="no new failures")
        case.proofs = [told if each is after.proof else each for each in case.proofs]
        return [each for each in failing if outcome(after, each) == "passed"]

    def _repeats(self, case: Case) -> int:
        repeats = max(1, self._run.options.repeats)
        return repeats * FLAKY if self._standing(case.own) == "flaky" else repeats

    def _standing(self, node_id: str) -> str:
        return self._run.baseline.get(node_id, Baseline()).standing

    def _red(self, case: Case) -> list[str]:
        """Its test and all others that are red at the base, with the evidence for its own."""
        known = [n for n, each in self._run.baseline.items() if each.standing == "failed"]
        elsewhere = case.base != self._run.base
        tests = dict.fromkeys([*case.session, *(known if elsewhere else ())])
        before = case.check(Check("before the fix", case.base, tuple(tests)), collects=False)
        flaky = not elsewhere and self._standing(case.own) == "flaky"
        own = [case.own] if flaky or outcome(before, case.own) != "passed" else []
        rest = [n for n in known if not elsewhere or outcome(before, n) != "passed"]
        return list(dict.fromkeys([*own, *rest]))

    def _concerned(self, case: Case, implementation: str) -> list[str]:
        """Tests that passed and run what is changed; the gate runs all others."""
        paths = {each.path for each in patches.changes(self._repo, case.base, implementation)}
        lines = self._known_lines(case, implementation)
        found: list[str] = []
        left = CONCERNED
        for test, files in sorted(self._needs.items()):
            baseline = self._run.baseline.get(test, Baseline())
            seconds = max((run.seconds for run in baseline.runs), default=0.0)
            needs = paths & files and not (lines and lines.isdisjoint(self._reached.get(test, ())))
            if needs and baseline.standing == "passed" and seconds <= left:
                found.append(test)
                left -= seconds
        return found

    def _known_lines(self, case: Case, implementation: str) -> Lines:
        """The changed lines; none where it was not measured which tests run one of the files'."""
        if case.base != self._run.base:
            return frozenset()
        replaced = patches.replaced_lines(self._repo, case.base, implementation)
        lines = frozenset((path, line) for path, each in replaced.items() for line in each)
        ran = {path for reached in self._reached.values() for path, _ in reached & lines}
        return lines if ran == replaced.keys() else frozenset()

    def _refuse_broken(self, case: Case, implementation: str, broken: list[str]) -> None:
        """Only what fails twice with the fix, and passes without it."""
        if not broken:
            return
        again = case.check(Check(f"{OTHERS}, once more", implementation, tuple(broken)))
        still = [each for each in broken if outcome(again, each) != "passed"]
        if still:
            base = case.check(Check("what it breaks, at the base", case.base, tuple(still)))
            lost = [each for each in still if outcome(base, each) == "passed"]
            if lost:
                raise Refusal(f"its fix breaks {lost[0]}")

    # tests and documents

    def _tests(self, case: Case, split: Split, fix: Fix) -> Taken | None:
        """A test change that is not good enough does not take a good fix with it."""
        if not split.tests:
            return None
        change = self._change(case, split, fix)
        try:
            return replace(self._judge.judged(case, change), commit=change.both)
        except Refusal as refusal:
            if not fix.commit and not split.documents:
                raise
            case.remarks.append(f"its test change was left out: {refusal}")
            return None

    def _change(self, case: Case, split: Split, fix: Fix) -> Change:
        if fix.commit:
            both = self._only(case, "both", Kind.IMPLEMENTATION, Kind.TEST)
            return Change(split.tests, fix.commit, both, fix.green)
        if split.implementation and case.task.want == "fix":
            alone = self._bench.check(Check("its test change alone", split.tests, (case.own,)))
            case.proofs.append(alone.proof)
            if outcome(alone, case.own) != "passed":
                both = self._only(case, "both", Kind.IMPLEMENTATION, Kind.TEST)
                return Change(split.tests, "", both)
        return Change(split.tests, "", split.tests)

    def _other(self, case: Case, split: Split, taken: Taken | None) -> str:
        if taken is None:
            return split.documents
        if not split.documents:
            return split.tests
        return self._only(case, "other", Kind.TEST, Kind.DOCUMENT)

    # special cases

    def _flags(self, case: Case, commit: str) -> tuple[str, ...]:
        """Lines that name a test, its data or its runner, or have what a test expects."""
        if not commit:
            return ()
        lines = [
            Added(*each)
            for each in patches.added_lines(self._repo, case.base, commit)
            if self._parts.kind(each[0]) is Kind.IMPLEMENTATION
        ]
        paths = sorted({line.path for line in lines})
        old = "\n".join(patches.show(self._repo, case.base, path) or "" for path in paths)
        file, _, name = function(case.own).partition("::")
        source = patches.show(self._repo, case.base, file) or ""
        test = assertions.functions(source).get(name)
        wanted = sorted(expected(test)) if test else []
        gone = patches.removed_lines(self._repo, case.base, commit)
        data = [name for name in _data(test) if name not in old]
        return tuple(flags(lines, [case.own, *data], wanted, old, gone))


def _held(verdict: Verdict) -> Verdict:
    first, *others = verdict.flags
    more = f" and {len(others)} more" if others else ""
    reason = cleaned(f"looks like a special case for a test: {first}{more}", REASON_LIMIT)
    return replace(verdict, ruling=Ruling.HELD, reason=reason)


def _data(test: ast.AST | None) -> list[str]:
    """Names of files in the source of a test."""
    nodes = ast.walk(test) if test is not None else ()
    texts = [each.value for each in nodes if isinstance(each, ast.Constant)]
    return [t for t in texts if isinstance(t, str) and re.fullmatch(r"[\w./-]+\.\w{1,5}", t)]
