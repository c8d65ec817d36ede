"""Checks for the bench, and their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mngr_tmr.journal.model import Test, TestRun
from mngr_tmr.journal.proofs import Proof

TIMED_OUT = 124


@dataclass(frozen=True)
class Check:
    """Run these tests of this commit, or all; with `noop` every command does nothing."""

    what: str
    commit: str
    tests: tuple[str, ...] = ()
    noop: bool = False
    collect_only: bool = False
    traced: bool = False
    """Also report which files each test uses."""
    reach: bool = False
    """Also report which lines each test runs."""
    mutants: tuple[tuple[str, str, float], ...] = ()
    """Also report the results with each of these mutants: path, text, seconds."""
    may_fail: bool = False
    """Whether a failure is expected or allowed."""
    keep: str = ""
    """A folder, relative to the run's, for the transcripts and recordings of the tests."""


@dataclass(frozen=True)
class Checked:
    tests: dict[str, Test]
    runs: dict[str, TestRun]
    errors: tuple[str, ...]
    proof: Proof
    touched: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict, compare=False)
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """The lines that each test runs, by file, as 1-3,7."""
    mutants: Mapping[int, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """Mutant -> test -> outcome, if pytest finished with the mutant."""
    told: str = field(default="", compare=False)
    """The end of pytest's output."""
    finished: bool = True
    """pytest finished, with any result; otherwise some tests did not run."""
    infrastructure: str = ""
    """Why the results are not valid, although the check ran three times.
    `runs` then has only the tests during which pytest ended."""
    bare: str = field(default="", compare=False)
    """Why it did not run in a sandbox; "" if it did."""

    @property
    def timed_out(self) -> bool:
        return self.proof.exit_code == TIMED_OUT

    @property
    def ended(self) -> bool:
        return self.finished or self.timed_out

    def passed(self, tests: Iterable[str]) -> bool:
        return all(self.outcome(each) == "passed" for each in tests)

    def outcome(self, test: str) -> str:
        return outcome(self.runs, test)


def outcome(runs: Mapping[str, TestRun], test: str) -> str:
    """Return the outcome of a test, or the worst of all cases of a function."""
    if test in runs:
        return runs[test].outcome
    found = [run.outcome for node, run in runs.items() if function(node) == test]
    return next((each for each in found if each != "passed"), "passed" if found else "missing")


def function(node_id: str) -> str:
    """Return the node id without its parameters."""
    return node_id.partition("[")[0]


def shards(tests: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """Split tests evenly but no file: a test may require an earlier one of its file."""
    files: dict[str, list[str]] = {}
    for each in tests:
        files.setdefault(each.partition("::")[0], []).append(each)
    found: list[list[str]] = [[] for _ in range(count)]
    for group in sorted(files.values(), key=len, reverse=True):
        min(found, key=len).extend(group)
    return [tuple(shard) for shard in found if shard]
