"""What runs of tests gave."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional, Union, cast

Entry = Mapping[str, object]
Value = Union[str, int, float, bool]


@dataclass(frozen=True)
class Failure:
    type: str
    message: str
    frames: tuple[tuple[str, int], ...]
    """File and line, outermost first."""
    line: int
    """In the test's own file."""
    values: dict[str, Value]
    """What the failing line spoke of."""


@dataclass(frozen=True)
class Command:
    """One that a test ran."""

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
    commands: list[Command] = field(default_factory=list)
    ended: bool = False
    """It ran to the end of its call, or of what went wrong before."""

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"


@dataclass
class Run:
    results: dict[str, Result]
    timed_out: bool = False
    output: str = ""
    seconds: float = 0.0
    """From asking to answer, so with all that goes with a test."""

    def passed(self, tests: "list[str] | tuple[str, ...]") -> bool:
        """Every one of these ran and passed."""
        return not self.timed_out and all(
            test in self.results and self.results[test].passed for test in tests
        )

    @property
    def failed(self) -> list[str]:
        return [test for test, result in self.results.items() if result.outcome == "failed"]


def read(path: str) -> dict[str, Result]:
    """The lines that the probe wrote; the last one may be torn when it was killed.

    A test that was killed after its set-up has no result: it did not pass.
    """
    found: dict[str, Result] = {}
    if not os.path.exists(path):
        return found
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                _add(found, json.loads(line))
            except ValueError:
                continue
    return {test: result for test, result in found.items() if result.ended}


def _add(found: dict[str, Result], entry: Entry) -> None:
    test = str(entry["test"])
    result = found.setdefault(test, Result(test))
    result.seconds += cast("float", entry["seconds"])
    outcome = str(entry["outcome"])
    result.ended |= outcome != "passed" or entry["when"] == "call"
    if outcome == "failed" or (outcome == "skipped" and result.passed):
        result.outcome = outcome
    if "failure" in entry and result.failure is None:
        result.failure = _failure(cast("Entry", entry["failure"]))
    if "commands" in entry:
        result.commands = [_command(each) for each in cast("list[Entry]", entry["commands"])]


def _failure(given: Entry) -> Failure:
    frames = cast("list[tuple[str, int]]", given["frames"])
    return Failure(
        type=str(given["type"]),
        message=str(given["message"]),
        frames=tuple((str(path), int(line)) for path, line in frames),
        line=cast("int", given.get("line", 0)),
        values=cast("dict[str, Value]", given["values"]),
    )


def _command(given: Entry) -> Command:
    file, line = cast("tuple[str, int]", given["line"])
    return Command(
        text=str(given["command"]),
        file=file,
        line=line,
        exit_code=cast("int", given["exit_code"]),
        stdout=str(given["stdout"]),
        stderr=str(given["stderr"]),
        home=str(given["home"]),
        work=str(given["work"]),
    )
