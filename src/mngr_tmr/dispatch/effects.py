"""The effects that a run requests and the events that answer them, as plain values.

`life`, `canaries` and `trials` ask for effects. The conductor performs them, or has `background`
perform them, and hands each answer, an event, back to `life`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mngr.model.struct import Json
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.journal.model import Ended, Outcome, TestRun, Verdict

# effects


@dataclass(frozen=True)
class Write:
    """Append an event to the journal."""

    type: str
    fields: Mapping[str, Json]
    moves: tuple[str, ...] = ()
    """Tasks without an agent whose stage may change with this event."""


@dataclass(frozen=True)
class Slow:
    """Run fewer agents at once: the service is overloaded."""


@dataclass(frozen=True)
class OfTry:
    task: str
    number: int


class LaunchTry(OfTry):
    """Create the agent that the journal has announced."""


@dataclass(frozen=True)
class Remind(OfTry):
    """Send the agent a message. If this fails, the next look shows it."""

    text: str


@dataclass(frozen=True)
class Collect(OfTry):
    """Fetch the commits and artifacts of the agent, then stop it."""

    ending: Outcome
    reason: str


class Verify(OfTry):
    """Verify the changes of the agent."""


@dataclass(frozen=True)
class Trial:
    """Run the tests of tasks that have no agent yet with all fixes accepted so far."""

    fixes: tuple[Fix, ...]
    tasks: tuple[str, ...]


Work = LaunchTry | Remind | Collect | Verify | Trial
"""Effects that take long. Other threads perform them, after the journal is synced."""
Effect = Write | Slow | Work

# events


@dataclass(frozen=True)
class OfTask:
    task: str


class Go(OfTask):
    """A slot is free for the task."""


class Cancelled(OfTask):
    """The run was cancelled."""


@dataclass(frozen=True)
class Launched(OfTask):
    agent_id: str


@dataclass(frozen=True)
class Sighted(OfTask):
    sighting: Sighting | None
    now: float


@dataclass(frozen=True)
class Finished(OfTask):
    """The agent was collected and stopped, or could not be launched or collected."""

    ended: Ended


@dataclass(frozen=True)
class Verified(OfTask):
    verdict: Verdict


@dataclass(frozen=True)
class Tried:
    trial: Trial
    results: Mapping[str, TestRun]
