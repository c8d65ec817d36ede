"""The stages before any agent: collect the tests, run them, and find weak ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mngr.errors import MngrError
from mngr.model.struct import Json
from mngr_outcome.codec import from_json, to_json
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.journal.model import Run, TestRun
from mngr_tmr.run import coverage
from mngr_tmr.run.words import counted
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.cases import of_files
from mngr_tmr.verify.checks import Check, Checked

WHY = ("INTERNALERROR>", "ERROR")
"""How pytest begins lines about what ended the session."""


class Baselining:
    def __init__(self, run: Run, bench: Bench, folder: Path, note: Note, timeout: float) -> None:
        """`timeout` is the time limit of each check, in seconds."""
        self._run, self._bench, self._folder = run, bench, folder
        self._note, self._timeout = note, timeout
        self.touched: dict[str, tuple[str, ...] | None] = {}
        """The files that each test used, as measured by this process."""
        self._lines: dict[str, Mapping[str, str]] = {}

    def collect(self) -> None:
        if self._run.tests:
            return
        checked = self._bench.check(Check("collect", self._run.base, collect_only=True))
        if not checked.tests:
            raise _nothing_collected(checked, self._run.repository)
        if checked.bare:
            told = f"baseline, verification and gates run without a sandbox: {checked.bare}"
            self._note("alert", {"text": told})
        tests: list[Json] = [to_json(test) for test in checked.tests.values()]
        self._note("collected", {"tests": tests, "errors": [*checked.errors]})

    def measure(self) -> None:
        """Run all tests `repeats` times, the first time with coverage."""
        while self._run.rounds < max(1, self._run.options.repeats):
            first = self._run.rounds == 0
            results: dict[str, Json] = {}
            self._round(results, [*self._run.tests], traced=first)
            if first:
                coverage.keep(self._folder, self._lines)
                self._untraced(results)
            missing = {n: to_json(TestRun("missing")) for n in self._run.tests if n not in results}
            self._note("baseline", {"results": {**results, **missing}})

    def _untraced(self, results: dict[str, Json]) -> None:
        """Run the files of failed tests again: tracing costs time and memory, so it may fail them.

        A test that also fails now keeps this failure.
        """
        runs = {test: from_json(TestRun, told) for test, told in results.items()}
        failed = [test for test, run in runs.items() if run.outcome == "failed"]
        self._round(results, [*of_files(self._run, failed)], traced=False)

    def _round(self, results: dict[str, Json], left: list[str], *, traced: bool) -> None:
        """Run each test once. If a test ends pytest, run those after it in another session."""
        while left:
            checks = self._bench.check_all("baseline", self._run.base, left, traced=traced)
            if any(checked.timed_out for checked in checks):
                told = f"the baseline took longer than {self._timeout:g} s"
                raise MngrError(told, "raise check_timeout under [tool.mngr_tmr]")
            for checked in checks:
                results |= {node: to_json(run) for node, run in checked.runs.items()}
                self.touched.update(checked.touched)
                self._lines |= checked.lines
            broken = next((each for each in checks if not each.finished), None)
            left = [each for each in left if broken and each not in results]
            if left and broken and not any(checked.runs for checked in checks):
                if not traced:
                    self._give_up(broken, len(left), some=bool(results))
                    break
                traced = False  # what measures may be what breaks the session

    def _give_up(self, broken: Checked, count: int, *, some: bool) -> None:
        """Alert about tests that cannot be run; raise if there is no other test."""
        lines = [line for line in broken.told.splitlines() if line.startswith(WHY)]
        last = (lines or broken.told.splitlines() or [""])[-1].removeprefix(WHY[0])
        why = ": ".join(filter(None, (broken.infrastructure, last.strip())))
        if not some:
            hint = f"the whole output is in {self._folder / broken.proof.log}"
            raise MngrError(f"no test could be run: {why}", hint)
        self._note("alert", {"text": f"{counted(count, 'test')} could not be run: {why}"})

    def weigh(self) -> None:
        """Run passing tests with commands that do nothing; a test that still passes is weak."""
        if self._run.weighed or self._run.options.only not in ("weak", "problems"):
            return
        passing = [n for n, each in self._run.baseline.items() if each.standing == "passed"]
        weak: list[Json] = []
        for checked in self._bench.check_all("no-op", self._run.base, passing, noop=True):
            weak += [node for node, run in checked.runs.items() if run.outcome == "passed"]
        self._note("weighed", {"weak": weak})


def _nothing_collected(checked: Checked, repository: str) -> MngrError:
    hint = "put paths of tests after `mngr tmr run`, arguments for pytest after `--`"
    if checked.errors:
        told = checked.errors[0]
        hint = f"run `pytest --collect-only` in {repository} to see the whole error, or {hint}"
    else:  # without pytest's summary, which says the same
        lines = [line.strip() for line in checked.told.splitlines()]
        complaints = [line for line in lines if line and not line.startswith("no tests ")]
        told = "; ".join(complaints)[-300:] or "pytest found none"
    return MngrError(f"no tests were collected: {told}", hint)
