"""How long a run pauses after a quota was exhausted. Pure."""

from __future__ import annotations

from mngr.model.struct import Json
from mngr_tmr.dispatch.effects import Write
from mngr_tmr.dispatch.resets import stated_reset
from mngr_tmr.journal.model import Run

LEAST_PAUSE = 5.0
BELIEVED = 3
"""Stated reset times in a row that may prove wrong before they are ignored."""
UNKNOWN, LONGEST = 3600.0, 4 * 3600.0
"""Seconds to pause if the reset time is not known, doubled each time up to the second value."""


def exhausted(run: Run, reason: str, now: float) -> list[Write]:
    """Return the events that pause a run, or none if it is paused for long enough."""
    if run.paused and not run.paused_until:
        return []  # paused by hand: only the user ends that
    stated = stated_reset(reason, now)
    if run.paused_until >= max(now, stated):
        return []  # another agent has exhausted the same quota
    anew = run.paused_until <= now
    missed = max(1, run.missed + anew)
    until = reset_time(reason, now, missed)
    events = []
    if anew and stated and missed == BELIEVED + 1:
        told = f"the quota was not reset at the stated time, {BELIEVED} times in a row"
        text = f"{told}; pausing for {until - now:.0f} s ({reason})"
        events.append(Write("alert", {"text": text}))
    fields: dict[str, Json] = {"reason": reason, "until": until, "missed": missed}
    return [*events, Write("paused", fields)]


def reset_time(reason: str, now: float, missed: int = 1) -> float:
    """Return when to try again after a quota was exhausted `missed` times in a row."""
    stated = stated_reset(reason, now)
    if stated and missed <= BELIEVED:
        return max(stated, now + LEAST_PAUSE)  # also if just over: clocks differ by a little
    blind = missed - BELIEVED if stated else missed
    return max(stated, now + min(LONGEST, UNKNOWN * 2.0 ** min(blind - 1, 10)))
