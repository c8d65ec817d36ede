"""What happens to the tasks of a run, as plain values: mostly the answer to an effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mngr_tmr.dispatch.effects import Trial
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.journal.model import Ended, TestRun, Verdict


@dataclass(frozen=True)
class OfTask:
    task: str


class Go(OfTask):
    """There is a slot for it."""


class Cancelled(OfTask):
    """The whole run is."""


@dataclass(frozen=True)
class Launched(OfTask):
    agent_id: str


@dataclass(frozen=True)
class Seen(OfTask):
    sighting: Sighting | None
    now: float


@dataclass(frozen=True)
class Collected(OfTask):
    """Its agent is still to be stopped."""

    ended: Ended


@dataclass(frozen=True)
class Finished(OfTask):
    """Its agent is stopped, or could not be launched, or could not be collected."""

    ended: Ended


@dataclass(frozen=True)
class Verified(OfTask):
    verdict: Verdict


@dataclass(frozen=True)
class Tried:
    trial: Trial
    results: Mapping[str, TestRun]
