"""A run in which nothing has happened for a minute says what it is waiting for."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mngr_tmr.dispatch.roles import Clock
from mngr_tmr.journal.model import Run

QUIET = 60.0
"""Seconds without a launch, a check or an ending."""
FEW = 3


class Stall:
    def __init__(self, run: Run, clock: Clock) -> None:
        self._run, self._clock = run, clock
        self._since = clock.now()
        self._said = ""

    def stirred(self) -> None:
        self._since = self._clock.now()

    def told(self, active: Sequence[str], waiting: Sequence[str]) -> str:
        """What it waits for, once; nothing while something happens."""
        if self._clock.now() - self._since < QUIET:
            return ""
        text = describe(self._run, active, waiting)
        said, self._said = self._said, text
        return text if text != said else ""


def describe(run: Run, active: Sequence[str], waiting: Sequence[str]) -> str:
    if active:
        minutes = run.options.agent_timeout / 60
        names = [run.tasks[each].tries[-1].agent_name for each in active]
        return f"waiting for {_few(names, 'agent')}; each may take {minutes:g} min"
    if run.paused and run.paused_until:
        clock = time.strftime("%H:%M:%S %Z", time.localtime(run.paused_until))
        return f"paused until {clock}: {run.paused}"
    if run.paused:
        return f"{run.paused}; `mngr tmr unpause {run.name}` continues it"
    return f"waiting to launch the next agent; {len(waiting)} tests wait for a canary"


def _few(names: Sequence[str], noun: str) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'} ({', '.join(names[:FEW])}{more})"
