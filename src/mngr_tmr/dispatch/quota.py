"""How long a run pauses after a quota was exhausted. Pure."""

from __future__ import annotations

import datetime
import re
import zoneinfo

from mngr.model.struct import Json
from mngr_tmr.dispatch.effects import Write
from mngr_tmr.journal.model import Run

LEAST_PAUSE = 5.0
BELIEVED = 3
"""Stated reset times in a row that may prove wrong before they are ignored."""
UNKNOWN, LONGEST = 3600.0, 4 * 3600.0
"""Seconds to pause if the reset time is not known, doubled each time up to the second value."""
CLOCK = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b(?: ?\((?P<zone>[\w/+-]+)\))?")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{10}(?:\.\d+)?")


def exhausted(run: Run, reason: str, now: float) -> list[Write]:
    """Return the events that pause a run, or none if it is paused for long enough."""
    if run.paused and not run.paused_until:
        return []  # paused by hand: only the user ends that
    stated = _stated_reset(reason, now)
    if run.paused_until >= max(now, stated):
        return []  # another agent has met the same quota
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
    stated = _stated_reset(reason, now)
    if stated and missed <= BELIEVED:
        return max(stated, now + LEAST_PAUSE)  # also if just over: clocks differ by a little
    blind = missed - BELIEVED if stated else missed
    return max(stated, now + min(LONGEST, UNKNOWN * 2.0 ** min(blind - 1, 10)))


def _stated_reset(reason: str, now: float) -> float:
    """Return the stated moment, or the next such time of day; 0 if there is none."""
    found = [_moment(word) for word in MOMENT.findall(reason)]
    return next((each for each in found if each), 0.0) or _time_of_day(reason, now)


def _moment(word: str) -> float:
    """Parse an ISO time, or seconds since 1970."""
    if "T" not in word:
        return float(word)
    try:
        when = datetime.datetime.fromisoformat(word.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return when.replace(tzinfo=when.tzinfo or datetime.UTC).timestamp()


def _time_of_day(reason: str, now: float) -> float:
    """Return the next such time of day, or one that passed less than ten minutes ago."""
    found = CLOCK.search(reason)
    if found is None:
        return 0.0
    here = datetime.datetime.fromtimestamp(now, _zone(found["zone"]))
    when = here.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
    if (here - when).total_seconds() > 600:
        when += datetime.timedelta(days=1)
    return when.timestamp()


def _zone(name: str | None) -> datetime.tzinfo | None:
    """Return the time zone; None, for unknown names too, is this machine's own."""
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):
        return datetime.UTC if name == "UTC" else None
