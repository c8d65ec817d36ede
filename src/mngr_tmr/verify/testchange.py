"""Decide whether a test change is accepted. Its effect is measured, in pytest sessions.

The old tests and the new ones run with the same implementation: the accepted fix, or the base.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Set
from dataclasses import dataclass

from mngr.api import Repo
from mngr_tmr.journal.model import Run
from mngr_tmr.run import coverage
from mngr_tmr.run.clustering import Lines
from mngr_tmr.verify import assertions, concerned, measuring
from mngr_tmr.verify.cases import Case, Refusal, failure
from mngr_tmr.verify.checks import Check, Checked, function
from mngr_tmr.verify.concerned import Touched
from mngr_tmr.verify.measuring import Measure, Measured, Sides
from mngr_tmr.verify.parts import Kind, Parts
from mngr_tmr.verify.weakening import beyond_only, expects_else, weaker

NOOP = "with commands that do nothing"
OLD_NOOP = f"the original tests, {NOOP}"
OTHERS = 10
"""The number of tests that are measured of those affected only through a helper."""


@dataclass(frozen=True)
class Commits:
    """The commits that are compared."""

    tests: str
    """The base with the test change alone."""
    fix: str
    """The base with the accepted fix alone, or ""."""
    both: str
    """The base with the fix and the test change; without a fix the same as `tests`."""
    green: tuple[str, ...] = ()
    """Tests that the fix makes pass."""


@dataclass(frozen=True)
class AcceptedTestChange:
    """An accepted test change: as good as what it replaces, or better."""

    touched: Touched
    needs_fix: bool = False
    expectation: bool = False
    """The test passes only because it was changed."""
    mutants: str = ""
    commit: str = ""
    """The base with everything that was verified together."""


@dataclass(frozen=True)
class SessionResults:
    """The results of the sessions."""

    old: Checked
    new: Checked
    before: Set[str]
    """Tests that pass as they were."""
    red: Set[str]
    """Tests that fail without the fix."""
    noop: Set[str]
    """Tests that fail if commands do nothing, and did not before."""
    turned: bool
    """The test passes only because of its commits."""


class TestJudge:
    __test__ = False

    def __init__(self, run: Run, repo: Repo, parts: Parts, measure: Measure, budget: float) -> None:
        self._run, self._repo, self._parts = run, repo, parts
        self._measure, self._budget = measure, budget

    def judged(self, case: Case, commits: Commits) -> AcceptedTestChange:
        """Return the accepted test change; raise a Refusal if it is rejected."""
        compared = (case.base, commits.tests, case.own)
        touched = concerned.touched(self._run, self._repo, self._parts, *compared)
        old = self._as_they_were(case, commits, touched)
        new = self._as_they_are(case, commits, touched, old)
        turned = _turned(case, old, new) and not commits.fix
        if turned:
            self._must_expect_else(case, touched)
        red = self._without_fix(case, commits, touched)
        noop = self._noop(case, commits, touched)
        seen = SessionResults(old, new, _passing(old), red, noop, turned)
        measured = self._measured(case, commits, touched, seen)
        self._must_not_lose(case, touched, measured)
        self._must_notice(case, touched, seen, measured)
        if case.task.want == "improve" and not commits.fix and not turned:
            self._must_improve(touched, measured, noop)
        needs_fix = bool(red & {*touched.changed, *touched.added, function(case.own)})
        return AcceptedTestChange(touched, needs_fix, turned, measured.told)

    # sessions

    def _as_they_were(self, case: Case, commits: Commits, touched: Touched) -> Checked:
        tests = tuple(dict.fromkeys([function(case.own), *touched.old]))
        commit = commits.fix or case.base
        return case.check(Check("the original tests", commit, tests, reach=True, may_fail=True))

    def _as_they_are(self, case: Case, commits: Commits, touched: Touched, old: Checked) -> Checked:
        """Run the changed tests; no test or case may be lost, and none that passed may fail."""
        own = function(case.own)
        tests = tuple(dict.fromkeys([own, *touched.new]))
        check = Check("with its test change", commits.both, tests, keep=case.kept())
        must = {own, *touched.changed, *touched.added, *(_passing(old) & {*touched.old})}
        new = self._seen_passing(case, check, must)
        for _ in range(self._run.options.repeats - 1):
            self._seen_passing(case, check, must)
        counts = Counter(function(node) for node in new.runs)
        for test, number in Counter(function(node) for node in old.runs).items():
            if counts[test] < number:
                raise Refusal(f"{test} has {counts[test]} cases instead of {number}")
        return new

    def _seen_passing(self, case: Case, check: Check, must: Set[str]) -> Checked:
        new = case.check(check)
        for test in check.tests:
            if test in must and new.outcome(test) != "passed":
                raise Refusal(failure(new, test, check.what))
        return new

    def _without_fix(self, case: Case, commits: Commits, touched: Touched) -> set[str]:
        """Return tests that fail without the fix; those that failed before must be among them."""
        if not commits.fix or not touched.new:
            return set()
        what = "its test change without the fix"
        check = Check(what, commits.tests, touched.new, may_fail=True)
        checked = case.check(check, collects=False)
        red = {test for test in touched.new if checked.outcome(test) != "passed"}
        for test in touched.old:
            if test in {function(each) for each in commits.green} and test not in red:
                raise Refusal(f"{test} now passes without the fix")
        return red

    def _noop(self, case: Case, commits: Commits, touched: Touched) -> set[str]:
        """Return tests that fail if commands do nothing, and did not before."""
        own = (*touched.changed, *touched.added)
        runs = [each for each in own if self._runs(touched, each)]
        exempt = [each for each in own if each not in runs]
        if exempt:
            case.remarks.append(f"not run {NOOP}, because it runs no command: {exempt[0]}")
        if not runs and not touched.near:
            return set()
        before = self._noticing(case, OLD_NOOP, commits.fix or case.base, touched.old)
        after = self._noticing(case, NOOP, commits.both, touched.new)
        for test in (*runs, *sorted(before)):
            if test not in after:
                raise Refusal(f"{test} also passes if the commands do nothing")
        return after - before

    def _noticing(self, case: Case, what: str, commit: str, tests: tuple[str, ...]) -> set[str]:
        if not tests:
            return set()
        checked = case.check(Check(what, commit, tests, noop=True, may_fail=True))
        return {test for test in tests if checked.outcome(test) == "failed"}

    def _runs(self, touched: Touched, test: str) -> bool:
        found = [each[test] for each in (touched.before, touched.after) if test in each]
        return any(assertions.runs_commands(each) for each in found)

    # mutants

    def _measured(
        self, case: Case, commits: Commits, touched: Touched, seen: SessionResults
    ) -> Measured:
        """Return the result with as many mutants as are necessary, of lines that tests reach."""
        own = function(case.own)
        seed = f"{self._run.name}/{case.task.id}/{case.each.number}"
        others = [each for each in touched.near if each != own]
        some = random.Random(seed).sample(others, min(OTHERS, len(others)))
        before = [t for t in dict.fromkeys([own, *touched.changed, *some]) if t in seen.before]
        after = list(dict.fromkeys([own, *touched.changed, *touched.added, *some]))
        after = [test for test in after if seen.new.outcome(test) == "passed"]
        # Without a test that must detect something, defects that no old test detects do not matter.
        improves = case.task.want == "improve" and not commits.fix and not seen.noop
        compares = improves or seen.turned or bool({*touched.added} - seen.red - seen.noop)
        if not compares and not {*before} & {*touched.old}:
            return Measured()
        reached = _reached(seen.old, before)
        if compares:
            traced = case.check(
                Check("lines that it executes", commits.both, tuple(after), reach=True)
            )
            reached |= _reached(traced, after)
        lines = self._of_implementation(reached)
        seconds = sum(self._seconds(test) for test in after)
        count = measuring.sample_size(self._budget, seconds)
        sides = Sides(
            commits.fix or case.base, commits.both, tuple(before), tuple(after), 10 + 5 * seconds
        )
        if not lines:
            return Measured()
        return self._measure.measured(sides, lines, seed, count, compares=compares)

    def _of_implementation(self, reached: Lines) -> dict[str, set[int]]:
        paths = {path for path, _ in reached if path.endswith(".py")}
        found = {p: set[int]() for p in paths if self._parts.kind(p) is Kind.IMPLEMENTATION}
        for path, line in reached:
            if path in found:
                found[path].add(line)
        return found

    def _seconds(self, test: str) -> float:
        """Return the time of a test at the baseline, which the journal has."""
        runs = [each.runs for node, each in self._run.baseline.items() if function(node) == test]
        return sum(max((run.seconds for run in each), default=0.0) for each in runs)

    # conclusions

    def _must_not_lose(self, case: Case, touched: Touched, measured: Measured) -> None:
        hints = self._hints(touched)
        if measured.survivor:
            if all(_only_beyond(touched, test) for test in touched.changed) and not touched.around:
                case.remarks.append(f"beyond its cited block: {measured.survivor}")
                return
            raise Refusal(measured.survivor)
        if measured.more:
            return
        if measured.old:
            case.remarks += [f"hint: {test}: {why}" for test, why in hints.items()]
        elif hints:
            test, why = next(iter(hints.items()))
            raise Refusal(f"{test}: {why}")
        if not measured.old and touched.old:
            told = "no mutant was killed" if measured.tried else "there are no mutants"
            case.remarks.append(f"{told}: the assertions were compared by their source code")

    def _hints(self, touched: Touched) -> dict[str, str]:
        """Return what the source shows, including helpers, which may change every assertion."""
        both = [test for test in touched.before if test in touched.after]
        found = {test: weaker(touched.before[test], touched.after[test]) for test in both}
        return {test: why for test, why in found.items() if why}

    def _must_expect_else(self, case: Case, touched: Touched) -> None:
        """Raise a Refusal unless the test now expects what its cited block shows."""
        own = function(case.own)
        if own not in touched.changed:
            what = ", ".join(touched.around[:3]) or "another test"
            raise Refusal(f"{own} passes only because of the change of {what}")
        if touched.around:
            raise Refusal(
                f"{own} passes only with changes beyond its expectation: {touched.around[0]}"
            )
        old, new = touched.before[own], touched.after[own]
        why = weaker(old, new)
        if not why and not expects_else(old, new):
            why = "passes with the expectations that failed before"
        if why:
            raise Refusal(f"{own}: {why}")

    def _must_notice(
        self, case: Case, touched: Touched, seen: SessionResults, measured: Measured
    ) -> None:
        """Raise a Refusal if a new test, or a changed expectation, detects no defect."""
        noticing = seen.red | seen.noop | measured.killers
        for test in (*touched.added, *([function(case.own)] if seen.turned else ())):
            if test in noticing:
                continue
            if measured.tried:
                raise Refusal(f"{test} detects none of {measured.tried} mutants")
            if self._runs(touched, test):
                continue  # the test fails if its commands do nothing
            if self._parts.has_python:
                raise Refusal(f"{test} executes no code of the implementation")
            case.remarks.append(f"not measured, because the implementation is not Python: {test}")

    def _must_improve(self, touched: Touched, measured: Measured, noop: set[str]) -> None:
        if measured.more or noop:
            return
        read = [test for test in touched.changed if _only_beyond(touched, test)]
        if not measured.old:
            read += [test for test in touched.changed if _asserts_more(touched, test)]
            read += [] if self._parts.has_python else [*touched.added]
        if not read:
            counted = f" and mutants (0 of {measured.tried})" if measured.tried else ""
            raise Refusal(f"not an improvement: it detects no more no-ops{counted} than before")


def _reached(checked: Checked, tests: Collection[str]) -> Lines:
    of_tests = [files for node, files in checked.lines.items() if function(node) in tests]
    return frozenset().union(*map(coverage.decoded, of_tests))


def _passing(checked: Checked) -> set[str]:
    tests = {function(node) for node in checked.runs}
    return {test for test in tests if checked.outcome(test) == "passed"}


def _turned(case: Case, old: Checked, new: Checked) -> bool:
    own = case.own
    return old.outcome(own) != "passed" and new.outcome(function(own)) == "passed"


def _only_beyond(touched: Touched, test: str) -> bool:
    return beyond_only(touched.before[test], touched.after[test])


def _asserts_more(touched: Touched, test: str) -> bool:
    old, new = (
        Counter(assertions.assertions(each[test])) for each in (touched.before, touched.after)
    )
    return bool(new - old)
