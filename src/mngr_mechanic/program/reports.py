"""Results of tests, as the probe in pytest writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Optional, Union

Value = Union[str, int, float, bool]


@dataclass(frozen=True)
class Failure:
    type: str
    message: str
    frames: Sequence[tuple[str, int]]
    """File and line, outermost first."""
    line: int
    """In the test's own file."""
    values: dict[str, Value]
    """Values of the names on the failing line."""


@dataclass(frozen=True)
class Invocation:
    """One command that a test ran."""

    text: str
    file: str
    line: int
    exit_code: int
    stdout: str
    stderr: str
    home: str
    work: str


@dataclass
class Result:
    """One test."""

    test: str
    outcome: str = "passed"
    seconds: float = 0.0
    failure: Optional[Failure] = None
    commands: list[Invocation] = field(default_factory=list)
    ended: bool = False
    """Its call ended, or its set-up failed."""

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


@dataclass
class PytestRun:
    results: dict[str, Result]
    timed_out: bool = False
    seconds: float = 0.0
    """From the request to the answer, including the start of pytest."""

    def passed(self, tests: "list[str] | tuple[str, ...]") -> bool:
        """Return whether each of these ran and passed."""
        ran = [self.results.get(test) for test in tests]
        return not self.timed_out and all(each is not None and each.passed for each in ran)

    @property
    def failed(self) -> list[str]:
        return [test for test, result in self.results.items() if result.outcome == "failed"]


def read(path: str) -> dict[str, Result]:
    """Return the results in a file of the probe, by test.

    The last line may be torn if the probe was killed. A test that was killed after its set-up has
    no result: it did not pass.
    """
    found: dict[str, Result] = {}
    if not os.path.exists(path):
        return found
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            result = found.setdefault(entry["test"], Result(entry["test"]))
            result.seconds += entry["seconds"]
            outcome = entry["outcome"]
            result.ended |= outcome != "passed" or entry["when"] == "call"
            if outcome == "failed" or (outcome == "skipped" and result.passed):
                result.outcome = outcome
            if "failure" in entry and result.failure is None:
                result.failure = Failure(**entry["failure"])
            if "commands" in entry:
                result.commands = [Invocation(**each) for each in entry["commands"]]
    return {test: result for test, result in found.items() if result.ended}
