"""The interfaces that the conductor uses: agents, verification, trials, orders and a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mngr.model.struct import Json
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.journal.model import Ended, Outcome, Task, TestRun, Try, Verdict

Note = Callable[[str, Mapping[str, Json]], None]
"""Append an event to the journal and apply it to the run."""


@dataclass(frozen=True)
class Fix:
    """An accepted change of the implementation, as a commit and the commit it is based on."""

    task: str
    base: str
    commit: str


class Fleet(Protocol):
    """The agents of a run."""

    def launch(self, task: Task, each: Try) -> str:
        """Return the id of the agent, which is created unless an earlier process did so."""

    def look(self, tries: Sequence[Try] | None = None) -> Mapping[str, Sighting]:
        """Return a sighting of the agents of these, or of all, attempts, by agent name."""

    def remind(self, agent_name: str, text: str) -> None: ...

    def collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> Ended:
        """Fetch the commits and artifacts of the agent, stop it, and return how its try ended."""


class Inspector(Protocol):
    def verify(self, task: Task, each: Try) -> Verdict: ...


class Trials(Protocol):
    def together(self, fixes: Sequence[Fix], tests: Sequence[str]) -> Mapping[str, TestRun]:
        """Run the tests with all fixes; return the results of those that ran."""


class Inbox(Protocol):
    """Orders from outside. Each is kept until it is in the journal."""

    def waiting(self) -> Sequence[tuple[str, Mapping[str, Json]]]:
        """Return the orders, oldest first, each with a name that is never used again."""

    def discard(self, name: str) -> None: ...


class Clock(Protocol):
    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
