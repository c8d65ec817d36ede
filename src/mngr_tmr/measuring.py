"""How much a test notices: of small planted defects, those that the old and the new test kill."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mngr.git import Repo
from mngr_tmr import patches
from mngr_tmr.bench import Bench, Check
from mngr_tmr.cases import outcome
from mngr_tmr.mutants import Mutant, mutants

FEWEST, MOST = 3, 12
ENOUGH = 4
"""So many mutants that the old test killed are enough."""
START = 1.0
"""Seconds that a check takes beside its tests."""


Seen = tuple[set[str], set[str]]
"""The old and the new tests that fail with a mutant."""


@dataclass(frozen=True)
class Sides:
    """The same implementation with the tests as they were, and with the tests as changed."""

    old: str
    new: str
    before: tuple[str, ...]
    """Tests that pass on the old side."""
    after: tuple[str, ...]
    """Tests that pass on the new side."""
    limit: float = 30.0
    """Seconds for each session: a mutant may never end."""


@dataclass(frozen=True)
class Goal:
    """What is to be found out; once it is, no more mutants are tried."""

    keeps: bool = False
    """Whether the new tests kill what the old ones did."""
    more: bool = False
    """Whether they kill a mutant more."""
    killers: frozenset[str] = frozenset()
    """Tests that have to kill one."""


@dataclass
class Measured:
    seed: str = ""
    tried: int = 0
    old: int = 0
    """Mutants that an old test killed."""
    more: int = 0
    """Mutants that no old test killed, and a new one does."""
    killers: set[str] = field(default_factory=set)
    """New tests that killed at least one."""
    survivor: str = ""
    """A mutant that an old test killed and its new form does not."""

    def left(self, goal: Goal) -> Goal:
        return Goal(
            goal.keeps and self.old < ENOUGH,
            goal.more and not self.more,
            goal.killers - self.killers,
        )

    def count(self, mutant: Mutant, seen: Seen | None) -> None:
        if seen is None:
            return
        old, new = seen
        self.tried += 1
        self.old += bool(old)
        self.more += bool(new and not old)
        self.killers |= new
        lost = old - new
        if lost and not self.survivor:
            self.survivor = f"{min(lost)} no longer fails with the defect {mutant.told}"

    @property
    def told(self) -> str:
        counted = f"of {self.tried} mutants the old tests killed {self.old}"
        return f"{counted}, the new ones {self.more} more (seed {self.seed})" if self.tried else ""


def sample_size(budget: float, seconds: float) -> int:
    """By what the tests took at the baseline, so that a resumed run takes the same sample."""
    if budget <= 0:
        return 0
    return min(MOST, max(FEWEST, int(budget / (START + seconds))))


class Measure:
    def __init__(self, repo: Repo, bench: Bench, folder: Path, workers: int) -> None:
        self._repo, self._bench, self._folder = repo, bench, folder
        self._workers = max(1, workers)

    def measured(
        self, sides: Sides, goal: Goal, lines: Mapping[str, frozenset[int]], seed: str, count: int
    ) -> Measured:
        texts = {path: patches.show(self._repo, sides.new, path) or "" for path in lines}
        found = Measured(seed)
        made = mutants(texts, lines, seed, count)
        for at in range(0, len(made), self._workers):
            batch = made[at : at + self._workers]
            left = found.left(goal)
            if left == Goal() or found.survivor:
                break
            with ThreadPoolExecutor(max_workers=self._workers) as pool:
                looked = list(pool.map(partial(self._look, sides, left), batch))
            for mutant, seen in zip(batch, looked, strict=True):
                found.count(mutant, seen)
        return found

    def _look(self, sides: Sides, goal: Goal, mutant: Mutant) -> Seen | None:
        """Which tests of both sides fail with it; None where that cannot be told."""
        asked = sides.before if goal.keeps or goal.more else ()
        old = self._killers(sides.old, mutant, asked, sides.limit)
        if old is None or not (old or goal.more or goal.killers):
            return None if old is None else (old, set())
        new = self._killers(sides.new, mutant, sides.after, sides.limit)
        if new is None or old <= new:
            return None if new is None else (old, new)
        # Once more: neither may be a matter of luck.
        again = self._killers(sides.new, mutant, sides.after, sides.limit)
        still = self._killers(sides.old, mutant, sides.before, sides.limit)
        return None if again is None or still is None else (old & still, new | again)

    def _killers(
        self, commit: str, mutant: Mutant, tests: Sequence[str], limit: float
    ) -> set[str] | None:
        """A mutant that ends pytest, or never ends, tells nothing about what the tests check."""
        if not tests:
            return set()
        bad = patches.with_file(self._repo, self._folder, commit, mutant.path, mutant.text)
        checked = self._bench.check(Check("a mutant", bad, tuple(tests), timeout=limit))
        if checked.timed_out or not checked.finished or checked.errors:
            return None
        return {test for test in tests if outcome(checked, test) == "failed"}


def union(reached: Iterable[Mapping[str, frozenset[int]]]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for files in reached:
        for path, lines in files.items():
            found[path] = found.get(path, frozenset()) | lines
    return found
