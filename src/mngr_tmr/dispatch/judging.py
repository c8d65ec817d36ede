"""What is to be done about an agent at work, from one look at it. Pure."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from dataclasses import dataclass, field

from mngr.errors import BadRecord
from mngr_outcome.outcome import parse_outcome
from mngr_tmr.journal.model import Outcome, Try
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.options import Options

OVERLOAD = re.compile(r"\b(429|529|overload|rate.?limit)", re.IGNORECASE)

SILENCE = 300.0
"""Seconds that a host may not answer before its agents are given up."""
NEVER_BEGAN = ("command not found:", "work directory is missing")
"""What an agent's launcher says that could not start its program."""


@dataclass(frozen=True)
class Sighting:
    """One agent in one reading."""

    state: str
    reason: str = ""
    since: float = 0.0
    outcome: bytes = b""
    """The file it published, if it has."""
    spent: Spending = field(default_factory=Spending)


@dataclass(frozen=True)
class Step:
    """`wait`, `remind` (with what to say), `throttle`, or `end` with an outcome."""

    kind: str
    outcome: Outcome = Outcome.NO_RESULT
    text: str = ""


WAIT = Step("wait")


def judge(each: Try, seen: Sighting | None, now: float, options: Options) -> Step:
    """The first line that matches wins."""
    if seen is None:
        return Step("end", Outcome.DIED, "its agent is gone")
    if seen.outcome:
        return _published(each, seen, now, options)
    over = _over_budget(seen.spent, options)
    if over:
        return Step("end", Outcome.OVER_BUDGET, over)
    if seen.state in ("STOPPED", "FAILED", "LOST", "DONE"):
        return _ended(seen)
    # One that cannot reach its model goes on trying by itself, as if it ran.
    if seen.state == "WAITING" and not seen.reason.startswith("unreachable"):
        return _waiting(each, seen, now, options)
    if seen.state == "UNREACHABLE" and now - seen.since > SILENCE:
        return Step("end", Outcome.DIED, f"its host did not answer for {SILENCE:g} s")
    if now - each.launched > options.agent_timeout + 60:
        return Step("end", Outcome.TIMED_OUT, f"timed out after {options.agent_timeout:g} s")
    return WAIT


def _published(each: Try, seen: Sighting, now: float, options: Options) -> Step:
    try:
        parse_outcome(seen.outcome)
    except BadRecord as error:
        alive = seen.state in ("RUNNING", "WAITING")
        if alive and not each.reminded:
            return Step("remind", text=f"Your outcome.json is not valid: {error.message}.")
        if alive and now - each.reminded < options.idle:
            return WAIT
        return Step("end", Outcome.NO_RESULT, f"malformed outcome.json: {error.message}")
    return Step("end", Outcome.UNCHANGED, "published")


def _over_budget(spent: Spending, options: Options) -> str:
    limits = options.agent_budget
    if limits.tokens is not None and spent.tokens > limits.tokens:
        return f"used {spent.tokens} tokens of {limits.tokens}"
    if limits.cost is not None and spent.counted > limits.cost:
        return f"used ${spent.counted:.2f} of ${limits.cost:.2f}"
    return ""


def _ended(seen: Sighting) -> Step:
    if "timed out" in seen.reason:
        return Step("end", Outcome.TIMED_OUT, seen.reason)
    if "over its limit" in seen.reason:
        return Step("end", Outcome.OVER_BUDGET, seen.reason)
    if seen.state == "DONE":
        return Step("end", Outcome.NO_RESULT, "ended without an outcome")
    if seen.state == "FAILED" and seen.reason.startswith(NEVER_BEGAN):
        return Step("end", Outcome.LAUNCH_FAILED, seen.reason)
    return Step("end", Outcome.DIED, f"{seen.state}: {seen.reason}")


def _waiting(each: Try, seen: Sighting, now: float, options: Options) -> Step:
    word, _, detail = seen.reason.partition(":")
    if word == "quota":
        return Step("end", Outcome.QUOTA, seen.reason)
    idle = now - max(seen.since, each.launched, each.reminded)
    if word == "error" and OVERLOAD.search(detail):
        return _overloaded(each, seen, idle, options)
    if idle < options.idle:
        return WAIT
    if word == "permission":
        return Step("end", Outcome.BLOCKED, f"asked for permission:{detail}")
    if word == "dialog":
        return Step("end", Outcome.BLOCKED, f"a dialog is open:{detail}")
    if each.reminded:
        return Step("end", Outcome.NO_RESULT, f"idle without an outcome ({seen.reason})")
    return Step("remind", text="You stopped without publishing an outcome.")


def _overloaded(each: Try, seen: Sighting, idle: float, options: Options) -> Step:
    """Its client has given up retrying by itself; one nudge later, when there is less load."""
    if not each.reminded:
        return Step("throttle", text=seen.reason)
    if idle < options.idle:
        return WAIT
    return Step("end", Outcome.DIED, seen.reason)


LEAST_PAUSE = 5.0
BELIEVED = 3
"""So often in a row a quota may say when it is back, and then not be."""
UNKNOWN, LONGEST = 3600.0, 4 * 3600.0
"""Seconds to wait where nobody can say how long; doubled each time, up to the second."""
CLOCK = re.compile(r"\b([01]?\d|2[0-3]):([0-5]\d)\b(?: ?\((?P<zone>[\w/+-]+)\))?")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{10}(?:\.\d+)?")


def reset_time(reason: str, now: float, missed: int = 1) -> float:
    """When to try again after a quota was exhausted `missed` times in a row.

    When it says so itself; but a time that proves wrong again and again is like none at all.
    """
    stated = stated_reset(reason, now)
    if stated and missed <= BELIEVED:
        return max(stated, now + LEAST_PAUSE)  # also if just over: clocks differ by a little
    blind = missed - BELIEVED if stated else missed
    return max(stated, now + min(LONGEST, UNKNOWN * 2.0 ** min(blind - 1, 10)))


def stated_reset(reason: str, now: float) -> float:
    """A moment, perhaps a past one, or the next such time of day; 0 if there is none."""
    found = [_moment(word) for word in MOMENT.findall(reason)]
    return next((each for each in found if each), 0.0) or _next(reason, now)


def _moment(word: str) -> float:
    """Of an ISO time, or seconds since 1970."""
    if "T" not in word:
        return float(word)
    try:
        when = datetime.datetime.fromisoformat(word.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return when.replace(tzinfo=when.tzinfo or datetime.UTC).timestamp()


def _next(reason: str, now: float) -> float:
    """The next such time of day; one that has just passed is the one that was meant."""
    found = CLOCK.search(reason)
    if found is None:
        return 0.0
    here = datetime.datetime.fromtimestamp(now, _zone(found["zone"]))
    when = here.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
    if (here - when).total_seconds() > 600:
        when += datetime.timedelta(days=1)
    return when.timestamp()


def _zone(name: str | None) -> datetime.tzinfo | None:
    """Nothing stands for this machine's own."""
    try:
        return zoneinfo.ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):
        return datetime.UTC if name == "UTC" else None
