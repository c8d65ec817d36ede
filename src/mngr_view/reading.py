"""Read a growing journal: its new events, and the tasks that they belong to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mngr_tmr.journal.events import Event, list_of, table_of, time_of
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.journal import JournalReader, is_at_work
from mngr_tmr.journal.model import Run

EVERYTHING = frozenset(("run_started", "collected", "baseline", "selected", "integration_started"))
"""Events after which any page may change."""


@dataclass
class Reading:
    """A run, as far as its journal has been read."""

    folder: Path
    run: Run = field(default_factory=Run)
    last: float = 0.0
    """The time of the newest event, which the pages show."""

    def __post_init__(self) -> None:
        self._journal = JournalReader(self.folder)

    @property
    def at_work(self) -> bool:
        return is_at_work(self.folder)

    def advance(self) -> set[str] | None:
        """Read new events and return their tasks; None if any task may have changed."""
        touched: set[str] = set()
        everything = False
        for event in self._journal.fresh():
            apply(self.run, event)
            self.last = time_of(event) or self.last
            everything = everything or event["type"] in EVERYTHING
            touched |= _tasks(event)
        return None if everything else touched


def _tasks(event: Event) -> set[str]:
    named = {str(event["task"])} if isinstance(event.get("task"), str) else set()
    for key in ("pick", "eviction"):
        about = table_of(event, key)
        named |= {str(each) for each in (about.get("task"), *list_of(about, "tasks")) if each}
    return named
