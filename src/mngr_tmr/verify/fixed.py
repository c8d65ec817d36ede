"""Verify a fix: the implementation part alone makes the test pass, and breaks no other test.

The tests and their data are those of the base.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mngr.api import Repo
from mngr_tmr.journal.model import Run
from mngr_tmr.run.clustering import Lines
from mngr_tmr.verify import patches
from mngr_tmr.verify.cases import Case, Refusal, fails_otherwise, failure, of_files
from mngr_tmr.verify.checks import Check, Checked

CONCERNED = 60.0
"""Maximum seconds of other tests to run with a fix, of tests known to use a file it changes."""
FLAKY = 3
"""A flaky test must pass this many times as often."""
FIX = "with its fix, the original tests"
OTHERS = "other tests with its fix"


@dataclass(frozen=True)
class Fixed:
    commit: str = ""
    """The base with the fix; "" if it is not a fix."""
    green: tuple[str, ...] = ()
    """Tests that it makes pass."""
    why: str = ""
    """Why it is not a fix."""


class FixJudge:
    def __init__(
        self,
        run: Run,
        repo: Repo,
        needs: Mapping[str, frozenset[str]],
        reached: Mapping[str, Lines],
    ) -> None:
        """`needs` are the files that each test is known to use, `reached` the lines it ran."""
        self._run, self._repo = run, repo
        self._needs, self._reached = needs, reached

    def judged(self, case: Case, implementation: str) -> Fixed:
        if not implementation:
            return Fixed()
        try:
            for _ in range(self._repeats(case)):
                checked = self._with_fix(case, implementation)
                if checked.outcome(case.own) != "passed":
                    raise Refusal(failure(checked, case.own, FIX))
            red = self._red(case)
            if case.own not in red:
                return Fixed(why="its test does not require its implementation changes")
            green = self._others(case, implementation, red)
        except Refusal as refusal:
            return Fixed(why=str(refusal))
        return Fixed(implementation, (case.own, *green))

    def _repeats(self, case: Case) -> int:
        repeats = max(1, self._run.options.repeats)
        return repeats * FLAKY if self._run.before(case.own).standing == "flaky" else repeats

    def _with_fix(self, case: Case, implementation: str) -> Checked:
        """Run its test alone, or with the tests of its file if it requires one of them."""
        check = Check(FIX, implementation, case.session, keep=case.kept())
        checked = case.check(check)
        if case.companions or not fails_otherwise(self._run, case.own, checked.runs.get(case.own)):
            return checked
        case.companions = of_files(self._run, [case.own])
        together = case.check(replace(check, what=f"{FIX}, all of its file", tests=case.companions))
        if together.outcome(case.own) == "passed":
            case.remarks.append("its test passes only after other tests of its file")
        return together

    def _red(self, case: Case) -> list[str]:
        """Return its test and all others that fail at the base, with evidence for its own."""
        known = [n for n, each in self._run.baseline.items() if each.standing == "failed"]
        elsewhere = case.base != self._run.base
        tests = dict.fromkeys([*case.session, *(known if elsewhere else ())])
        check = Check("before the fix", case.base, tuple(tests), may_fail=True)
        before = case.check(check, collects=False)
        flaky = not elsewhere and self._run.before(case.own).standing == "flaky"
        own = [case.own] if flaky or before.outcome(case.own) != "passed" else []
        rest = [n for n in known if not elsewhere or before.outcome(n) != "passed"]
        return list(dict.fromkeys([*own, *rest]))

    # other tests

    def _others(self, case: Case, implementation: str, red: list[str]) -> list[str]:
        """Return other tests that it makes pass; raise a Refusal if it breaks one."""
        concerned = self._concerned(case, implementation)
        failing = [each for each in red if each != case.own]
        if not concerned and not failing:
            return []
        check = Check(OTHERS, implementation, (*failing, *concerned), may_fail=True)
        after = case.check(check)
        broken = [each for each in concerned if after.outcome(each) != "passed"]
        self._refuse_broken(case, implementation, broken)
        told = replace(after.proof, finding="no new failures")
        case.proofs = [told if each is after.proof else each for each in case.proofs]
        return [each for each in failing if after.outcome(each) == "passed"]

    def _concerned(self, case: Case, implementation: str) -> list[str]:
        """Return tests that passed and run a changed line; the gate runs all others."""
        paths = {each.path for each in patches.changes(self._repo, case.base, implementation)}
        lines = self._known_lines(case, implementation)
        found: list[str] = []
        left = CONCERNED
        for test, files in sorted(self._needs.items()):
            baseline = self._run.before(test)
            seconds = max((run.seconds for run in baseline.runs), default=0.0)
            needs = paths & files and not (lines and lines.isdisjoint(self._reached.get(test, ())))
            if needs and baseline.standing == "passed" and seconds <= left:
                found.append(test)
                left -= seconds
        return found

    def _known_lines(self, case: Case, implementation: str) -> Lines:
        """Return the changed lines; none if it was not measured which tests run each file."""
        if case.base != self._run.base:
            return frozenset()
        hunks = [*patches.hunks(self._repo, case.base, implementation)]
        lines = frozenset(
            (each.path, each.start + n) for each in hunks for n in range(len(each.removed) or 2)
        )
        ran = {path for reached in self._reached.values() for path, _ in reached & lines}
        return lines if ran == {each.path for each in hunks} else frozenset()

    def _refuse_broken(self, case: Case, implementation: str, broken: list[str]) -> None:
        """Raise a Refusal for a test that fails twice with the fix, and passes without it."""
        if not broken:
            return
        again = case.check(Check(f"{OTHERS}, again", implementation, tuple(broken)))
        still = [each for each in broken if again.outcome(each) != "passed"]
        if still:
            base = case.check(Check("tests that it breaks, at the base", case.base, tuple(still)))
            lost = [each for each in still if base.outcome(each) == "passed"]
            if lost:
                raise Refusal(f"its fix breaks {lost[0]}")
