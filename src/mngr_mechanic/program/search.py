"""Try candidates until one makes the test pass and breaks no other test."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mngr_mechanic.program import localise
from mngr_mechanic.program.clock import Stopwatch
from mngr_mechanic.program.lab import Lab
from mngr_mechanic.program.localise import Coverage
from mngr_mechanic.program.reports import PytestRun, Result
from mngr_mechanic.program.source import Edit, SourceFile

RESERVE = 1.0
VERIFY_SHARE = 2.0
"""Checking a candidate that passes may take as long again as the whole budget."""
HOLD_SHARE = 0.25
"""The part of the budget for improving on a candidate that leaves related tests failing."""


@dataclass
class Knowledge:
    """What is known about the tests before any edit."""

    test: str
    seconds: float
    passing: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Not run yet."""
    coverage: Coverage = field(default_factory=Coverage)
    repeat: int = 3
    crash: list[tuple[str, int]] = field(default_factory=list)
    """Where the test crashed, if it did."""
    alike: set[str] = field(default_factory=set)
    """Failing tests that crash in the same place: they have the same cause."""
    failures: dict[str, str] = field(default_factory=dict)
    """The messages of failing tests."""
    unused: frozenset[tuple[str, int]] = frozenset()
    """Lines that no passing test runs."""

    def learn(self, results: Mapping[str, Result], traced: Coverage, root: str) -> None:
        self.passing += [test for test, each in results.items() if each.passed]
        failed = [each for each in results.values() if each.outcome == "failed"]
        self.failing += [each.test for each in failed]
        self.failures |= {each.test: told(each) for each in failed}
        self.alike |= {each.test for each in failed if self.crashes_alike(each, root)}
        self.unknown = [test for test in self.unknown if test not in results]
        self.coverage.by_test.update(traced.by_test)
        self.coverage.last.update(traced.last)

    def crashes_alike(self, result: Result, root: str) -> bool:
        """Return whether the last two places are the same: all errors may share the last one."""
        if not self.crash or result.failure is None:
            return False
        return localise.crash(result, root)[-2:] == self.crash[-2:]


@dataclass
class Found:
    edit: "Edit | None" = None
    tried: int = 0
    rejected: list[str] = field(default_factory=list)
    """Edits that made the test pass but broke another."""
    out_of_time: bool = False


class Search:
    def __init__(self, labs: list[Lab], known: Knowledge, clock: Stopwatch) -> None:
        self.labs, self.known, self.clock = labs, known, clock
        self.sources: dict[str, SourceFile] = {}
        self.found = Found()
        self._held: list[tuple[tuple[bool, int], Edit]] = []
        """Edits that leave tests failing, with the number of these tests.

        Last are those with which a test fails in another way, as it does if it has two causes, if
        at least half of the failing tests that reach them pass.
        """
        self._hold_until = math.inf
        self._lock = threading.Lock()
        self._checking = threading.Lock()

    def run(self, queue: Iterator[Edit]) -> Found:
        threads = [threading.Thread(target=self._work, args=(lab, queue)) for lab in self.labs[1:]]
        for thread in threads:
            thread.start()
        self._work(self.labs[0], queue)
        for thread in threads:
            thread.join()
        return self.found

    def settled(self) -> Found:
        """Return the result; if nothing better was found, the best of the held edits."""
        if self.found.edit is None and self._held:
            self.found.edit = min(self._held, key=lambda held: held[0])[1]
        return self.found

    def _work(self, lab: Lab, queue: Iterator[Edit]) -> None:
        while (edit := self._next(queue)) is not None:
            source = self.sources[edit.path]
            lab.write(edit.path, edit.applied(source.text))
            try:
                if self._passes(lab) and self._breaks_nothing(lab, edit):
                    self._take(lab, edit)
            finally:
                lab.write(edit.path, source.text)

    def _next(self, queue: Iterator[Edit]) -> "Edit | None":
        with self._lock:
            if self.found.edit is not None:
                return None
            if self.clock.left < RESERVE or self.clock.spent > self._hold_until:
                self.found.out_of_time = True
                return None
            edit = next(queue, None)
            self.found.tried += edit is not None
            return edit

    def _passes(self, lab: Lab, patience: float = 1.0) -> bool:
        test = self.known.test
        limit = (4 + 4 * self.known.seconds) * patience
        return lab.run([test], seconds=limit).passed([test])

    # check other tests

    def _breaks_nothing(self, lab: Lab, edit: Edit) -> bool:
        """Return whether no other test breaks; checks run one at a time, as one may take long."""
        shown = describe(self.sources[edit.path], edit)
        with self._checking:
            if self.found.edit is not None:
                return False
            self.clock.say(f"passes with {shown}; checking the other tests")
            for _ in range(self.known.repeat - 1):
                if not self._passes(lab, patience=5):
                    return self._reject(shown, "the test is flaky with it")
            why = self._objection(lab, self._concerned(edit))
            return self._reject(shown, why) if why else True

    def _take(self, lab: Lab, edit: Edit) -> None:
        """Accept an edit, or hold it if it leaves tests failing that reach it."""
        with self._checking:
            related = [test for test in self._reaching(edit) if test in self.known.failing]
            run = lab.run(related, seconds=self._time_to_check()) if related else PytestRun({})
            red = [test for test in related if not run.passed([test])]
            other = [test for test in red if self._fails_otherwise(run.results.get(test))]
        with self._lock:
            if not red:
                self.found.edit = self.found.edit or edit
                return
            if other and len(red) > len(related) / 2:
                shown = describe(self.sources[edit.path], edit)
                self._reject(shown, f"{other[0]} fails in another way with it")
                return
            how = "in another way" if other else "as before"
            self.clock.say(f"  possible: {(other or red)[0]} fails {how} with it")
            if not other:
                hold = self.clock.spent + HOLD_SHARE * self.clock.budget
                self._hold_until = min(self._hold_until, hold)
            self._held.append(((bool(other), len(red)), edit))

    def _fails_otherwise(self, result: "Result | None") -> bool:
        """Return whether the edit changes how that test fails."""
        return result is not None and told(result) != self.known.failures.get(result.test)

    def _reject(self, shown: str, why: str) -> bool:
        self.clock.say(f"  rejected: {why}")
        self.found.rejected.append(f"{shown} ({why})")
        return False

    def _lines(self, edit: Edit) -> range:
        last = edit.line + self.sources[edit.path].text[edit.start : edit.end].count("\n")
        return range(edit.line, last + 1)

    def _reaching(self, edit: Edit) -> list[str]:
        return self.known.coverage.covering(edit.path, self._lines(edit))

    def _concerned(self, edit: Edit) -> list[str]:
        """Return tests with the same cause, of the same file, that reach the line, or unknown."""
        known, reaching = self.known, set(self._reaching(edit))
        file = known.test.partition("::")[0]
        alike = [test for test in known.failing if test in known.alike]
        mine = [test for test in known.passing if test.partition("::")[0] == file]
        reached = [test for test in known.passing if test in reaching]
        safe = all((edit.path, line) in known.unused for line in self._lines(edit))
        return list(dict.fromkeys([*alike, *mine, *reached, *([] if safe else known.unknown)]))

    def _time_to_check(self) -> float:
        return self.clock.wall(max(self.clock.budget * VERIFY_SHARE - self.clock.spent, 5))

    def _objection(self, lab: Lab, tests: list[str]) -> str:
        """Return why the edit is wrong. A failing test runs twice: the machine may be loaded."""
        left = list(tests)
        while left:
            run = lab.run(left, seconds=self._time_to_check(), stop=True)
            failed = run.failed
            if not failed:
                return self._missing(lab, [t for t in left if t not in run.results], run.timed_out)
            again = lab.run(failed[:1], seconds=self._time_to_check())
            why = "" if again.passed(failed[:1]) else self._held_against(lab, failed[0])
            if why:
                return why
            left = [test for test in left if test not in run.results]
        return ""

    def _missing(self, lab: Lab, unrun: list[str], timed_out: bool) -> str:
        """Return a problem if tests have no result, unless they never had one."""
        if unrun and timed_out:
            return f"no time to run {unrun[0]}"
        before = self._as_they_were(lab, unrun)[0] if unrun else {}
        lost = [test for test in unrun if test in before]
        return f"{lost[0]} does not finish" if lost else ""

    def _held_against(self, lab: Lab, test: str) -> str:
        """Return a problem if a test fails, unless it failed before for another reason."""
        if test in self.known.unknown:
            found, traced = self._as_they_were(lab, [test])
            if test not in found:
                return ""
            if found[test].outcome != "failed":
                return f"breaks {test}"
            self.known.learn({test: found[test]}, traced, lab.root)
            if test not in self.known.alike:
                return ""
        return f"leaves {test} failing" if test in self.known.alike else f"breaks {test}"

    def _as_they_were(self, lab: Lab, tests: list[str]) -> tuple[dict[str, Result], Coverage]:
        """Return results and coverage of tests without any edit."""
        texts = {path: lab.read(path) for path in self.sources}
        edited = [path for path, text in texts.items() if text != self.sources[path].text]
        for path in edited:
            lab.write(path, self.sources[path].text)
        found = localise.traced(lab, tests, self.clock.wall(30))
        for path in edited:
            lab.write(path, texts[path])
        return found


def told(result: Result) -> str:
    """Return a failure without the numbers, which differ each time."""
    said = f"{result.failure.type}: {result.failure.message}" if result.failure else ""
    return re.sub(r"[\d.]+", "#", said)


def describe(source: SourceFile, edit: Edit) -> str:
    """Return `file:12: old line -> new line`."""
    if edit.new.startswith("\n"):
        return f"{edit.path}:{edit.line}: {edit.new.strip()} is added"
    before = source.text[: edit.start].rfind("\n") + 1
    after = source.text.find("\n", edit.end)
    after = len(source.text) if after < 0 else after
    old = source.text[before:after].strip()
    new = (source.text[before : edit.start] + edit.new + source.text[edit.end : after]).strip()
    return f"{edit.path}:{edit.line}: {_short(old)} -> {_short(new)}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:119] + "…"
