"""Search for a fix: try the likeliest edits, then measure more and try all other edits."""

from __future__ import annotations

import tokenize
from collections.abc import Callable, Iterator

from mngr_mechanic.program import candidates, hints, localise, project
from mngr_mechanic.program.clock import Stopwatch
from mngr_mechanic.program.lab import Lab
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.search import Found, Knowledge, Search
from mngr_mechanic.program.source import Edit, SourceFile
from mngr_mechanic.program.task import Assignment

AT_FIRST = 30
"""Edits to try with only the coverage of the test's own file, which finds half of all defects."""
LEARN_SHARE = 0.35
"""The part of the budget for learning what other tests run."""


class Repairer:
    def __init__(self, lab: Lab, task: Assignment, result: Result, clock: Stopwatch) -> None:
        self.lab, self.task, self.result, self.clock = lab, task, result, clock
        everything = lab.collect() or [task.test]
        self.known = Knowledge(task.test, result.seconds, unknown=[*everything], repeat=task.repeat)
        self.known.unused = task.unused
        self.known.crash = localise.crash(result, lab.root)
        self.sources: dict[str, SourceFile] = {}
        self.tried: set[Edit] = set()
        self.count = 0

    def find(self, more_labs: Callable[[], list[Lab]]) -> Found:
        file = self.task.test.partition("::")[0]
        mine = [test for test in self.known.unknown if test.partition("::")[0] == file]
        # The failing test first, so that it is traced even if time is short.
        mine.sort(key=lambda test: test != self.task.test)
        self._learn(mine, max(10.0, self.task.budget * LEARN_SHARE))
        labs = [self.lab, *more_labs()]
        search = Search(labs, self.known, self.clock)
        found = self._search(search, AT_FIRST)
        if found.edit is None and not found.out_of_time:
            left = self.task.budget * LEARN_SHARE
            self._learn(list(self.known.unknown), min(left, self.clock.left / 2))
            found = self._search(search, None)
        return search.settled()

    def _search(self, search: Search, limit: "int | None") -> Found:
        edits = self._ranked()
        self.count = len(edits)
        self.clock.say(f"{len(edits)} candidate repairs" if limit else "trying the rest")
        search.sources = self.sources
        return search.run(self._untried(edits, limit))

    def _untried(self, edits: list[Edit], limit: "int | None") -> Iterator[Edit]:
        for edit in edits:
            if limit is not None and len(self.tried) >= limit:
                return
            if edit not in self.tried and candidates.valid(self.sources[edit.path], edit):
                self.tried.add(edit)
                yield edit

    def _ranked(self) -> list[Edit]:
        failure = self.result.failure
        assert failure is not None
        self._read_sources()
        path = self.task.test.partition("::")[0]
        source = self.lab.read(path) if path.endswith(".py") else ""
        clues = hints.gather(source, failure.line, failure, self.result.commands)
        clues.documented = project.documented_words(self.lab.root)
        known = self.known
        scores = localise.suspicion(known.test, known.coverage, known.passing, known.crash)
        told = {(path, line): score for path, line, score in self.task.suspects}
        scores = localise.preferred(scores, told)
        return [edit for _, edit in candidates.ranked(self.sources.values(), scores, clues)]

    def _read_sources(self) -> None:
        """Read the files of the project that the test runs, except tests."""
        reached = {path for path, _ in self.known.coverage.by_test.get(self.task.test, ())}
        reached = reached or {path for path, _, _ in self.task.suspects}
        for path in sorted(reached - set(self.sources)):
            if project.is_test(path) or not path.endswith(".py"):
                continue
            try:
                self.sources[path] = SourceFile(path, self.lab.read(path))
            except (OSError, SyntaxError, ValueError, tokenize.TokenError) as error:
                self.clock.say(f"cannot read {path}: {error}")

    def why_nothing(self) -> str:
        """Return why there is no candidate."""
        reached = {path for path, _ in self.known.coverage.by_test.get(self.task.test, ())}
        if not reached:
            return "the test does not execute any Python code of this project"
        code = sorted(path for path in reached if not project.is_test(path))
        if not code:
            return "the test executes only test files of this project"
        if not self.sources:
            return f"the files that the test executes cannot be read: {', '.join(code[:3])}"
        return f"no small change is known for the lines of {', '.join(code[:3])} that it executes"

    def _learn(self, tests: list[str], seconds: float) -> None:
        """Learn which of these tests pass, and which lines each of them runs."""
        if not tests or seconds < 1:
            return
        results, coverage = localise.traced(self.lab, tests, self.clock.wall(seconds))
        self.known.learn(results, coverage, self.lab.root)
        known = self.known
        said = f"{len(known.passing)} tests pass, {len(known.failing)} fail"
        self.clock.say(f"{said}, {len(known.unknown)} not run yet")
