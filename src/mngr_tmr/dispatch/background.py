"""What takes long, done by other threads; its effect on the run is for the one thread that asked.

Only that thread writes the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from enum import IntEnum

Effect = Callable[[], None]
Work = Callable[[], Effect]


class Rank(IntEnum):
    """Order of the work: launches first, because a waiting launch leaves its slot idle."""

    LAUNCH = 0
    OTHER = 1


class Background:
    """Work announced in a step begins with its end, and is told of in a later one."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._due: list[tuple[Rank, bool, Work]] = []
        self._busy: dict[Future[Effect], bool] = {}
        self.slots = 0
        """How many of these keep a slot."""

    @property
    def idle(self) -> bool:
        return not (self._due or self._busy)

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def submit(self, work: Work, *, slot: bool, rank: Rank = Rank.OTHER) -> None:
        self._due.append((rank, slot, work))
        self.slots += slot

    def begin(self) -> None:
        for _, slot, work in sorted(self._due, key=lambda each: each[0]):
            self._busy[self._executor.submit(work)] = slot
        self._due.clear()

    def finish(self) -> None:
        for future in [each for each in self._busy if each.done()]:
            self.slots -= self._busy.pop(future)
            future.result()()
