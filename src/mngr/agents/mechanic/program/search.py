"""Try candidates until one makes the test pass and breaks no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mngr.agents.mechanic.program.clock import Clock
from mngr.agents.mechanic.program.lab import Lab
from mngr.agents.mechanic.program.localise import Coverage
from mngr.agents.mechanic.program.reports import Result
from mngr.agents.mechanic.program.source import Edit, Source

RESERVE = 1.0
VERIFY_SHARE = 2.0
"""Once something was found, checking it may take as long again as the whole budget."""


@dataclass
class Knowledge:
    """What is known of the tests before anything is changed."""

    test: str
    seconds: float
    passing: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Not run yet."""
    coverage: Coverage = field(default_factory=Coverage)
    repeat: int = 3

    def learn(self, results: Mapping[str, Result], traced: Coverage) -> None:
        self.passing += [test for test, each in results.items() if each.passed]
        self.failing += [test for test, each in results.items() if each.outcome == "failed"]
        self.unknown = [test for test in self.unknown if test not in results]
        self.coverage.by_test.update(traced.by_test)
        self.coverage.last.update(traced.last)


@dataclass
class Found:
    edit: "Edit | None" = None
    tried: int = 0
    rejected: list[str] = field(default_factory=list)
    """What made the test pass but broke another."""
    out_of_time: bool = False


class Search:
    def __init__(self, labs: list[Lab], known: Knowledge, clock: Clock) -> None:
        self.labs, self.known, self.clock = labs, known, clock
        self.sources: dict[str, Source] = {}
        self.found = Found()
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

    def _work(self, lab: Lab, queue: Iterator[Edit]) -> None:
        while (edit := self._next(queue)) is not None:
            source = self.sources[edit.path]
            lab.write(edit.path, edit.applied(source.text))
            try:
                if self._passes(lab) and self._breaks_nothing(lab, edit):
                    with self._lock:
                        self.found.edit = self.found.edit or edit
            finally:
                lab.write(edit.path, source.text)

    def _next(self, queue: Iterator[Edit]) -> "Edit | None":
        with self._lock:
            if self.found.edit is not None:
                return None
            if self.clock.left < RESERVE:
                self.found.out_of_time = True
                return None
            edit = next(queue, None)
            self.found.tried += edit is not None
            return edit

    def _passes(self, lab: Lab, patience: float = 1.0) -> bool:
        test = self.known.test
        limit = (4 + 4 * self.known.seconds) * patience
        return lab.run([test], seconds=limit).passed([test])

    # nothing else may break

    def _breaks_nothing(self, lab: Lab, edit: Edit) -> bool:
        """One at a time: it takes all the time there is."""
        shown = describe(self.sources[edit.path], edit)
        with self._checking:
            if self.found.edit is not None:
                return False
            self.clock.say(f"passes with {shown}; checking the other tests")
            for _ in range(self.known.repeat - 1):
                if not self._passes(lab, patience=5):
                    return self._reject(shown, "it passes only sometimes")
            broken = self._first_broken(lab, self._concerned(edit))
            return self._reject(shown, f"breaks {broken}") if broken else True

    def _reject(self, shown: str, why: str) -> bool:
        self.clock.say(f"  not that: {why}")
        self.found.rejected.append(f"{shown} ({why})")
        return False

    def _concerned(self, edit: Edit) -> list[str]:
        """Of the same file, then those that reach the line, then those nobody has looked at."""
        source = self.sources[edit.path]
        first = edit.line
        last = first + source.text[edit.start : edit.end].count("\n")
        lines = range(first, last + 1)
        reaching = set(self.known.coverage.covering(edit.path, lines))
        file = self.known.test.partition("::")[0]
        passing = self.known.passing
        mine = [test for test in passing if test.partition("::")[0] == file]
        reached = [test for test in passing if test in reaching]
        return list(dict.fromkeys([*mine, *reached, *self.known.unknown]))

    def _first_broken(self, lab: Lab, tests: list[str]) -> str:
        """A test that fails is asked twice: a loaded machine is not our fault."""
        left = list(tests)
        while left:
            seconds = max(self.clock.budget * VERIFY_SHARE - self.clock.spent, 5)
            run = lab.run(left, seconds=seconds, stop=True)
            failed = run.failed
            if not failed:
                unrun = [test for test in left if test not in run.results]
                return unrun[0] if unrun and run.timed_out else ""
            again = lab.run(failed[:1], seconds=seconds)
            if not again.passed(failed[:1]) and not self._failed_before(lab, failed[0]):
                return failed[0]
            left = [test for test in left if test not in run.results]
        return ""

    def _failed_before(self, lab: Lab, test: str) -> bool:
        """Of a test nobody has looked at yet: perhaps it was broken all along."""
        if test not in self.known.unknown:
            return False
        edited = {path: lab.read(path) for path in self.sources}
        for path, source in self.sources.items():
            if edited[path] != source.text:
                lab.write(path, source.text)
        failed = not lab.run([test], seconds=30).passed([test])
        for path, text in edited.items():
            if text != self.sources[path].text:
                lab.write(path, text)
        return failed


def describe(source: Source, edit: Edit) -> str:
    """`file:12: old line -> new line`, as short as it can be told."""
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
