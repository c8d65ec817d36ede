"""Decide what to do about an agent at work, from one reading of it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mngr.errors import BadRecord
from mngr.model.state import EndKind
from mngr_outcome.outcome import parse_outcome
from mngr_tmr.journal.model import Outcome, Try
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.options import Options

OVERLOAD = re.compile(r"\b(429|529|overload|rate.?limit)", re.IGNORECASE)

SILENCE = 300.0
"""Seconds after which the agents of a host that does not answer are given up."""


@dataclass(frozen=True)
class Sighting:
    """An agent as one reading shows it."""

    state: str
    reason: str = ""
    since: float = 0.0
    outcome: bytes = b""
    """The content of its outcome.json, if it has published one."""
    spent: Spending = field(default_factory=Spending)
    ending: EndKind = EndKind.PLAIN
    waiting: str = ""
    """What it waits for, as in `Signals`."""


@dataclass(frozen=True)
class Step:
    """`wait`, `remind` with a text, `throttle`, or `end` with an outcome."""

    kind: str
    outcome: Outcome = Outcome.NO_RESULT
    text: str = ""


WAIT = Step("wait")


def judge(each: Try, seen: Sighting | None, now: float, options: Options) -> Step:
    """Return the next step; the first condition that matches decides."""
    if seen is None:
        return Step("end", Outcome.DIED, "its agent no longer exists")
    if seen.outcome:
        return _published(each, seen, now, options)
    over = _over_budget(seen.spent, options)
    if over:
        return Step("end", Outcome.OVER_BUDGET, over)
    if seen.state in ("STOPPED", "FAILED", "LOST", "DONE"):
        return _ended(seen)
    # An agent that cannot reach its model keeps trying by itself, so it counts as running.
    if seen.state == "WAITING" and seen.waiting != "unreachable":
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
    tokens, cost = options.agent_max_tokens, options.agent_max_cost
    if tokens is not None and spent.tokens > tokens:
        return f"used {spent.tokens} tokens of {tokens}"
    if cost is not None and spent.counted > cost:
        return f"used ${spent.counted:.2f} of ${cost:.2f}"
    return ""


def _ended(seen: Sighting) -> Step:
    if seen.ending is EndKind.TIMED_OUT:
        return Step("end", Outcome.TIMED_OUT, seen.reason)
    if seen.ending is EndKind.OVER_LIMIT:
        return Step("end", Outcome.OVER_BUDGET, seen.reason)
    if seen.state == "DONE":
        return Step("end", Outcome.NO_RESULT, "ended without an outcome")
    if seen.ending is EndKind.NEVER_BEGAN:
        return Step("end", Outcome.LAUNCH_FAILED, seen.reason)
    return Step("end", Outcome.DIED, f"{seen.state}: {seen.reason}")


def _waiting(each: Try, seen: Sighting, now: float, options: Options) -> Step:
    word, detail = seen.waiting, seen.reason.partition(":")[2]
    if word == "quota":
        return Step("end", Outcome.QUOTA, seen.reason)
    idle = now - max(seen.since, each.launched, each.reminded)
    if word == "error" and OVERLOAD.search(seen.reason):
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
    """Return the step for an agent that stopped retrying: remind it once, under less load."""
    if not each.reminded:
        return Step("throttle", text=seen.reason)
    if idle < options.idle:
        return WAIT
    return Step("end", Outcome.DIED, seen.reason)
