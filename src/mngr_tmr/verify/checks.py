"""What the bench is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mngr_tmr.journal.model import Proof, Test, TestRun

TIMED_OUT = 124


@dataclass(frozen=True)
class Check:
    """Run these tests of this commit, or all of them; `noop` makes every command do nothing."""

    what: str
    commit: str
    tests: tuple[str, ...] = ()
    noop: bool = False
    collect_only: bool = False
    traced: bool = False
    """Tell also which files each test needs."""
    reach: bool = False
    """Tell also which lines each test runs."""
    mutants: tuple[tuple[str, str, float], ...] = ()
    """Tell also how the tests go with each of these: path, text, seconds."""
    keep: str = ""
    """A folder, relative to the run's, for the transcripts and recordings that the tests leave."""


@dataclass(frozen=True)
class Checked:
    tests: dict[str, Test]
    runs: dict[str, TestRun]
    errors: tuple[str, ...]
    proof: Proof
    touched: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict, compare=False)
    lines: Mapping[str, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """The lines each test runs, by file, as 1-3,7."""
    mutants: Mapping[int, Mapping[str, str]] = field(default_factory=dict, compare=False)
    """Mutant -> test -> outcome; none of a mutant with which pytest does not come to its end."""
    told: str = field(default="", compare=False)
    """The end of what pytest printed."""
    finished: bool = True
    """Pytest came to its end, with whatever result; else some tests were never tried."""
    infrastructure: str = ""
    """Why this is no verdict, although it was tried twice: the work neither passed nor failed.
    `runs` then holds only the tests that pytest ended within."""
    bare: str = field(default="", compare=False)
    """Why it did not run in a sandbox; nothing where it did."""

    @property
    def timed_out(self) -> bool:
        return self.proof.exit_code == TIMED_OUT

    def passed(self, tests: Iterable[str]) -> bool:
        return all(self.outcome(each) == "passed" for each in tests)

    def outcome(self, node_id: str) -> str:
        return self.runs[node_id].outcome if node_id in self.runs else "missing"


def shards(tests: Sequence[str], count: int) -> list[tuple[str, ...]]:
    """As even as whole files allow: a test may need an earlier one of its file."""
    files: dict[str, list[str]] = {}
    for each in tests:
        files.setdefault(each.partition("::")[0], []).append(each)
    found: list[list[str]] = [[] for _ in range(count)]
    for group in sorted(files.values(), key=len, reverse=True):
        min(found, key=len).extend(group)
    return [tuple(shard) for shard in found if shard]
