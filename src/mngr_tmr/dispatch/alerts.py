"""Messages while a run is in progress: alerts, and what a run without progress waits for."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from mngr_tmr.dispatch.effects import Write
from mngr_tmr.dispatch.roles import Clock
from mngr_tmr.journal.model import ANSWERS, Ended, Outcome, Run
from mngr_tmr.run.words import counted, few, span

QUIET = 60.0
"""Seconds without a launch, a check or an ending."""
FEW = 3


def alerts(run: Run, ended: Ended) -> list[Write]:
    """Return the alerts about an attempt that has just ended and is not in the journal yet."""
    texts = (*_unpriced(run, ended), *_alike(run, ended))
    return [Write("alert", {"text": text}) for text in texts]


def _unpriced(run: Run, ended: Ended) -> list[str]:
    if not ended.spent.unpriced or run.options.max_cost is None:
        return []
    new = {*ended.spent.unpriced} - {*run.spent.unpriced}
    price = "the budget uses the price of its vendor's most expensive model"
    return [f"the price of {', '.join(sorted(new))} is not known; {price}"] if new else []


def _alike(run: Run, ended: Ended) -> list[str]:
    """Return an alert if many agents failed the same way, probably for one reason."""
    threshold = run.options.alert_after
    if ended.outcome in (*ANSWERS, Outcome.CANCELLED) or threshold <= 0:
        return []
    kind = _kind(ended)
    earlier = [each.ended for task in run.tasks.values() for each in task.tries if each.ended]
    same = 1 + sum(each.outcome is ended.outcome and _kind(each) == kind for each in earlier)
    return [f"{threshold} agents ended the same way: {kind}"] if same == threshold else []


def _kind(ended: Ended) -> str:
    """Return the outcome and its reason without the numbers that make each one unique."""
    reason = re.sub(r"[0-9a-f]{8,}|\d+", "#", ended.reason)[:120]
    return f"{ended.outcome}: {reason}" if reason else str(ended.outcome)


class Stall:
    """Finds out when nothing has happened for a minute."""

    def __init__(self, run: Run, clock: Clock) -> None:
        self._run, self._clock = run, clock
        self._since = clock.now()
        self._said = ""

    def stirred(self) -> None:
        self._since = self._clock.now()

    def told(self, active: Sequence[str], waiting: Sequence[str]) -> str:
        """Return what the run waits for, once; "" while something happens."""
        if self._clock.now() - self._since < QUIET:
            return ""
        text = _waits_for(self._run, active, waiting)
        said, self._said = self._said, text
        return text if text != said else ""


def _waits_for(run: Run, active: Sequence[str], waiting: Sequence[str]) -> str:
    if active:
        names = [run.tasks[each].tries[-1].agent_name for each in active]
        limit = f"time limit {span(run.options.agent_timeout)} each"
        return f"waiting for {counted(len(names), 'agent')} ({few(names, FEW)}); {limit}"
    if run.paused and run.paused_until:
        clock = time.strftime("%H:%M:%S %Z", time.localtime(run.paused_until))
        return f"paused until {clock}: {run.paused}"
    if run.paused:
        return f"{run.paused}; to continue: mngr tmr unpause {run.name}"
    return f"waiting to start the next agent; {counted(len(waiting), 'test')} waiting for a canary"
