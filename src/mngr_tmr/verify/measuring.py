"""Measure how much tests detect: the mutants that the old and the new tests kill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from mngr.api import Repo
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.checks import Check, function
from mngr_tmr.verify.mutants import Mutant, mutants

FEWEST, MOST = 3, 12
FORK = 0.3
"""Seconds that a mutant takes in addition to the tests."""

Failing = dict[str, bool]
"""Tests that fail with a mutant, and whether an assertion detected it, not only a crash."""
Killers = dict[Mutant, Failing]


@dataclass(frozen=True)
class Sides:
    """The same implementation with the old tests, and with the changed tests."""

    old: str
    new: str
    before: tuple[str, ...]
    """Tests that pass on the old side."""
    after: tuple[str, ...]
    """Tests that pass on the new side."""
    limit: float = 30.0
    """Time limit of a session in seconds: a mutant may never end."""


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
    compared: bool = True
    """The new tests also ran with mutants that no old test killed."""

    def count(self, mutant: Mutant, old: Failing, new: Failing) -> None:
        noticing = {test for test, asserted in new.items() if asserted}
        self.tried += 1
        self.old += bool(old)
        self.more += bool(noticing and not old)
        self.killers |= noticing
        lost = old.keys() - new.keys()
        if lost and not self.survivor:
            self.survivor = f"{min(lost)} no longer fails with the defect {mutant.told}"

    @property
    def told(self) -> str:
        if not self.tried:
            return ""
        counted = f"of {self.tried} mutants the old tests killed {self.old}"
        new = f"{self.more} more" if self.compared else "not all of them"
        new = "the same ones" if not self.compared and not self.survivor else new
        return f"{counted}, the new tests {new} (seed {self.seed})"


def sample_size(budget: float, seconds: float) -> int:
    """Return the number of mutants for a budget; a resumed run gets the same from the journal."""
    if budget <= 0:
        return 0
    return min(MOST, max(FEWEST, int(budget / (FORK + seconds))))


class Measure:
    def __init__(self, repo: Repo, bench: Bench) -> None:
        self._repo, self._bench = repo, bench

    def measured(
        self, sides: Sides, lines: Mapping[str, Set[int]], seed: str, count: int, *, compares: bool
    ) -> Measured:
        """Return what both sides detect; unless it `compares`, only of what the old tests kill."""
        texts = {path: patches.show(self._repo, sides.new, path) or "" for path in lines}
        made = mutants(texts, lines, seed, count)
        found = Measured(seed, compared=compares)
        for look in self._looked(sides, made, compares=compares):
            found.count(*look)
        return found

    def _looked(
        self, sides: Sides, made: Sequence[Mutant], *, compares: bool
    ) -> Iterator[tuple[Mutant, Failing, Failing]]:
        """Yield each mutant with its old and new killers; mutants that were lost run twice."""
        old, new = self._both(sides, made) if compares else self._kept(sides, made)
        known = [mutant for mutant in made if mutant in old and mutant in new]
        lost = [mutant for mutant in known if old[mutant].keys() - new[mutant].keys()]
        still, again = self._both(sides, lost) if lost else ({}, {})
        for mutant in known:
            before, after = old[mutant], new[mutant]
            if mutant in lost:  # so that neither result is due to chance
                before = {test: before[test] for test in before if test in still.get(mutant, {})}
                after = {**after, **again.get(mutant, {})}
            yield mutant, before, after

    def _kept(self, sides: Sides, made: Sequence[Mutant]) -> tuple[Killers, Killers]:
        """Return the killers; the new tests run only with mutants that the old ones kill."""
        old = self._killers(sides.old, made, sides.before, sides.limit)
        killed = [mutant for mutant in made if old.get(mutant)]
        new = self._killers(sides.new, killed, sides.after, sides.limit)
        return old, {**{mutant: {} for mutant in made if mutant not in killed}, **new}

    def _both(self, sides: Sides, made: Sequence[Mutant]) -> tuple[Killers, Killers]:
        """Return the killers of both sides, which run at the same time."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            old = pool.submit(self._killers, sides.old, made, sides.before, sides.limit)
            new = pool.submit(self._killers, sides.new, made, sides.after, sides.limit)
            return old.result(), new.result()

    def _killers(
        self, commit: str, made: Sequence[Mutant], tests: tuple[str, ...], limit: float
    ) -> Killers:
        """Return the killers of each mutant, unless it ends pytest or never ends."""
        if not tests or not made:
            return {mutant: {} for mutant in made}
        planted = tuple((mutant.path, mutant.text, limit) for mutant in made)
        checked = self._bench.check(Check("mutants", commit, tests, mutants=planted))
        return {
            made[number]: _failing(outcomes)
            for number, outcomes in checked.mutants.items()
            if 0 <= number < len(made)
        }


def _failing(outcomes: Mapping[str, str]) -> Failing:
    found: Failing = {}
    for node, how in outcomes.items():
        if how in ("failed", "crashed"):
            found[function(node)] = found.get(function(node), False) or how == "failed"
    return found
