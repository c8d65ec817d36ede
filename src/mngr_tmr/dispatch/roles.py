"""Who plays in a run beside the conductor: agents, verification, orders from outside, a clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mngr.model.struct import Json
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.journal.model import Ended, Outcome, Task, TestRun, Try, Verdict

Note = Callable[[str, Mapping[str, Json]], None]
"""Journal an event, and let the run know."""


@dataclass(frozen=True)
class Order:
    """An agent to be made."""

    task: str
    number: int
    agent_name: str
    node_id: str
    want: str
    base: str


@dataclass(frozen=True)
class Fix:
    """An accepted change of the implementation: the commit, and what it was made on."""

    task: str
    base: str
    commit: str


class Fleet(Protocol):
    """The agents of a run. `look` is one reading per host, whatever their number."""

    def launch(self, order: Order) -> str:
        """The id of the agent of that name, made now or by an earlier process."""

    def look(self, tries: Sequence[Try] | None = None) -> Mapping[str, Sighting]:
        """By agent name; of these tries, or of all there ever were."""

    def remind(self, agent_name: str, text: str) -> None: ...

    def collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> Ended:
        """Bring its commits and artifacts home."""

    def stop(self, each: Try, ended: Ended) -> Ended:
        """Stop it, once it was collected: what it left, and how that went."""


class Inspector(Protocol):
    def verify(self, task: Task, each: Try) -> Verdict: ...


class Trials(Protocol):
    """Tests run with accepted fixes, before more agents look for the same."""

    def together(self, fixes: Sequence[Fix], tests: Sequence[str]) -> Mapping[str, TestRun]:
        """How these tests go with all of the fixes; a test that was not run is not in it."""


class Inbox(Protocol):
    """Orders from outside. One stays where it is until it is in the journal."""

    def waiting(self) -> Sequence[tuple[str, Mapping[str, Json]]]:
        """Oldest first, each with a name that no other ever has."""

    def discard(self, name: str) -> None: ...


class Clock(Protocol):
    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
