"""What a run does, as plain values: `life` and its neighbours ask for it, others perform it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mngr.model.struct import Json
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.journal.model import Ended, Outcome


@dataclass(frozen=True)
class Write:
    """Append a line to the journal."""

    type: str
    fields: Mapping[str, Json]
    moves: tuple[str, ...] = ()
    """Tasks without an agent that the line gives another place: a group, a slot, none at all."""


@dataclass(frozen=True)
class Pause:
    """Launch nothing more until the quota is back."""

    reason: str


@dataclass(frozen=True)
class Slow:
    """Have fewer agents at once: the service is overloaded."""


@dataclass(frozen=True)
class OfTry:
    task: str
    number: int


class Launch(OfTry):
    """Make its agent, which the journal announces."""


class Look(OfTry):
    """In the next step, with all others of that step by one reading of each host."""


@dataclass(frozen=True)
class Remind(OfTry):
    """Delivery takes seconds and may fail; the next look shows what came of it."""

    text: str


@dataclass(frozen=True)
class Collect(OfTry):
    """Bring its commits and artifacts home."""

    ending: Outcome
    reason: str


@dataclass(frozen=True)
class Stop(OfTry):
    ended: Ended


class Verify(OfTry):
    """Find out what its work is worth."""


@dataclass(frozen=True)
class Trial:
    """Run the tests of tasks that have no agent yet with all fixes accepted so far."""

    fixes: tuple[Fix, ...]
    tasks: tuple[str, ...]


Work = Launch | Remind | Collect | Stop | Verify | Trial
"""Takes long: done by other threads, once what was written before is on the disk."""
Effect = Write | Pause | Slow | Look | Work
