"""Return the verdict on one attempt. Agents' reports are not used; the change is measured.

The change is split by path into implementation, tests and documents, and each part is verified by
itself: the implementation in `fixed.py`, the tests in `testchange.py`, special cases in `flags.py`.
A test that passes only because it was changed is a changed expectation, for a person to decide.
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
from mngr_tmr.journal.model import Ruling, Run, Task, Try, Verdict
from mngr_tmr.run.clustering import Lines
from mngr_tmr.run.settings import ProjectSettings
from mngr_tmr.run.words import few
from mngr_tmr.verify import assertions, patches
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.cases import Case, Refusal, failure, is_doctest
from mngr_tmr.verify.checks import Check, function
from mngr_tmr.verify.fixed import Fixed, FixJudge
from mngr_tmr.verify.flags import Added, examples, expected, flags
from mngr_tmr.verify.forbidden import refuse_forbidden
from mngr_tmr.verify.measuring import Measure
from mngr_tmr.verify.parts import Kind, Parts
from mngr_tmr.verify.testchange import AcceptedTestChange, Commits, TestJudge

REASON_LIMIT = 2000


@dataclass(frozen=True)
class Split:
    """Commits on the base with one kind of change each; "" if there is none."""

    implementation: str = ""
    tests: str = ""
    documents: str = ""


class RealInspector:
    def __init__(
        self,
        run: Run,
        repo: Repo,
        bench: Bench,
        project: ProjectSettings,
        folder: Path,
        needs: Mapping[str, frozenset[str]] | None = None,
        reached: Mapping[str, Lines] | None = None,
    ) -> None:
        self._run, self._repo, self._bench = run, repo, bench
        self._project, self._folder = project, folder
        self._fixes = FixJudge(run, repo, needs or {}, reached or {})

    @cached_property
    def _parts(self) -> Parts:
        files = {test.file for node, test in self._run.tests.items() if not is_doctest(node)}
        return Parts(self._repo, self._run.base, self._project, files)

    @cached_property
    def _doctested(self) -> frozenset[str]:
        """Return the modules with doctests, which are implementation."""
        return frozenset(test.file for node, test in self._run.tests.items() if is_doctest(node))

    @cached_property
    def _tests(self) -> TestJudge:
        measure = Measure(self._repo, self._bench)
        budget = float(self._project.mutant_seconds)
        return TestJudge(self._run, self._repo, self._parts, measure, budget)

    def verify(self, task: Task, each: Try) -> Verdict:
        assert each.ended is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        case = Case(task, each, each.ended, self._bench, float(self._project.check_timeout))
        try:
            verdict = self._verified(case)
        except Refusal as refusal:
            return self._verdict(case, Ruling.REFUSED, cleaned(str(refusal), REASON_LIMIT))
        return _held(verdict) if verdict.flags else verdict

    def _verdict(self, case: Case, ruling: Ruling, reason: str) -> Verdict:
        remarks, proofs = tuple(case.remarks), tuple(case.proofs)
        return Verdict(ruling, reason, remarks=remarks, proofs=proofs, artifacts=case.artifacts)

    def _verified(self, case: Case) -> Verdict:
        """Return the verdict; cheap checks are first."""
        installed = self._bench.modules
        refuse_forbidden(self._repo, self._project, case.base, case.head, installed)
        split = Split(
            self._only(case, "implementation", Kind.IMPLEMENTATION),
            self._only(case, "tests", Kind.TEST),
            self._only(case, "documents", Kind.DOCUMENT),
        )
        if split == Split():
            return self._nothing_needed(case)
        fix = self._fixes.judged(case, split.implementation)
        taken = self._taken(case, split, fix)
        if taken is not None and taken.expectation:
            return self._expectation(case, split, taken)
        other = self._other(case, split, taken)
        if not fix.commit and not other:
            raise Refusal(fix.why or "its test requires none of its changes")
        if case.task.want == "fix" and not fix.commit:
            what = "tests and their data were" if split.tests else "documentation was"
            raise Refusal(fix.why or f"its test still fails: only {what} changed")
        if split.implementation and not fix.commit:
            case.remarks.append(f"left out: {fix.why}")
        changed = patches.changes(self._repo, case.base, fix.commit) if fix.commit else []
        alone = [each.path for each in changed if self._parts.only_tests_use(each.path)]
        case.remarks += [f"only tests seem to use {path}" for path in alone]
        together = bool(fix.commit and taken and taken.needs_fix)
        return replace(
            self._verdict(case, Ruling.ACCEPTED, "verified"),
            implementation=fix.commit,
            other=other,
            together=together,
            turned_green=fix.green,
            tests_changed=taken.touched.changed if taken else (),
            tests_added=taken.touched.added if taken else (),
            mutants=taken.mutants if taken else "",
            flags=self._flags(case, fix.commit),
        )

    def _expectation(self, case: Case, split: Split, taken: AcceptedTestChange) -> Verdict:
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

    def _only(self, case: Case, part: str, *kinds: Kind) -> str:
        """Return a commit on the base with the changes of these kinds; "" if there are none."""
        subject = (case.ended.summary or case.own).splitlines()[0][:72]

        def keep(path: str) -> bool:
            return self._parts.kind(path) in kinds

        commit = patches.only(self._repo, self._folder, case.base, case.head, keep, subject)
        if commit:  # git must not collect it before it is on the branch
            name = f"{case.task.id}/{case.each.number}/{part}"
            self._repo.git("update-ref", f"refs/mngr/tmr/{self._run.name}/parts/{name}", commit)
        return commit

    def _nothing_needed(self, case: Case) -> Verdict:
        """Accept that nothing was changed, if the test passes and passed from the start."""
        if case.task.want == "fix":
            check = Check("without any change", case.head, (case.own,), keep=case.kept())
            for _ in range(max(1, self._run.options.repeats)):
                checked = case.check(check)
                if checked.outcome(case.own) != "passed":
                    raise Refusal(failure(checked, case.own, "without any change"))
            before = self._run.before(case.own).runs
            failed = sum(1 for each in before if each.outcome == "failed")
            if failed and case.base == self._run.base:
                told = f"it failed in {failed} of {len(before)} runs before any agent started"
                raise Refusal(f"{told}, and passes now although nothing was changed")
        return self._verdict(case, Ruling.UNCHANGED, "no change was required")

    # tests and documents

    def _taken(self, case: Case, split: Split, fix: Fixed) -> AcceptedTestChange | None:
        """Return the test change if it is accepted. A rejected one does not reject the fix."""
        if not split.tests:
            return None
        commits = self._commits(case, split, fix)
        try:
            return replace(self._tests.judged(case, commits), commit=commits.both)
        except Refusal as refusal:
            if not fix.commit and not split.documents:
                raise
            case.remarks.append(f"its test change was left out: {refusal}")
            return None

    def _commits(self, case: Case, split: Split, fix: Fixed) -> Commits:
        if fix.commit:
            both = self._only(case, "both", Kind.IMPLEMENTATION, Kind.TEST)
            return Commits(split.tests, fix.commit, both, fix.green)
        if split.implementation and case.task.want == "fix":
            alone = self._bench.check(Check("its test change alone", split.tests, (case.own,)))
            case.proofs.append(alone.proof)
            if alone.outcome(case.own) != "passed":
                both = self._only(case, "both", Kind.IMPLEMENTATION, Kind.TEST)
                return Commits(split.tests, "", both)
        return Commits(split.tests, "", split.tests)

    def _other(self, case: Case, split: Split, taken: AcceptedTestChange | None) -> str:
        if taken is None or not split.documents:
            return split.tests if taken else split.documents
        return self._only(case, "other", Kind.TEST, Kind.DOCUMENT)

    # special cases

    def _flags(self, case: Case, commit: str) -> tuple[str, ...]:
        """Return lines that name a test, its data or its runner, or have what a test expects."""
        if not commit:
            return ()
        hunks = [*patches.hunks(self._repo, case.base, commit)]
        lines = [
            Added(each.path, number, text)
            for each in hunks
            if self._parts.kind(each.path) is Kind.IMPLEMENTATION
            for number, text in enumerate(each.added, each.at)
        ]
        paths = sorted({line.path for line in lines})
        old = "\n".join(patches.show(self._repo, case.base, path) or "" for path in paths)
        file, _, name = function(case.own).partition("::")
        source = patches.show(self._repo, case.base, file) or ""
        test, module = assertions.functions(source).get(name), assertions.parsed(source)
        wanted = sorted(expected(test, module)) if test and module else []
        gone = [text for each in hunks for text in each.removed]
        data = [name for name in _data(test) if name not in old]
        changed = {each.path for each in hunks} & self._doctested
        lost = [path for path in sorted(changed) if self._loses_examples(case.base, commit, path)]
        told = [f"{path}: (changes examples that are doctests)" for path in lost]
        helpers = [path for path in paths if self._parts.may_be_a_helper(path)]
        told += [f"{path}: (may be a helper: only tests use it)" for path in helpers]
        return (*flags(lines, [case.own, *data], wanted, old, gone), *told)

    def _loses_examples(self, base: str, commit: str, path: str) -> bool:
        before, after = (examples(patches.show(self._repo, each, path)) for each in (base, commit))
        return not before <= after


def _held(verdict: Verdict) -> Verdict:
    told = f"looks like a special case for a test: {few(verdict.flags, 1)}"
    reason = cleaned(told, REASON_LIMIT)
    return replace(verdict, ruling=Ruling.HELD, reason=reason)


def _data(test: ast.AST | None) -> list[str]:
    """Return the names of files in the source of a test."""
    nodes = ast.walk(test) if test is not None else ()
    texts = [each.value for each in nodes if isinstance(each, ast.Constant)]
    return [t for t in texts if isinstance(t, str) and re.fullmatch(r"[\w./-]+\.\w{1,5}", t)]
