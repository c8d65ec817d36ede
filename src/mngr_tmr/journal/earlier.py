"""Convert events of earlier versions to those of this version."""

from __future__ import annotations

from mngr.model.struct import Json
from mngr_outcome.outcome import Obstacle
from mngr_tmr.journal.events import Event, as_table, table_of, text_of
from mngr_tmr.journal.model import Outcome, Ruling

NO_FIX = ("more time", "a manual fix")
"""The needs of a mechanic that found no fix, when nothing else marked it."""

REQUIRE_A_FIX = (*Outcome, Ruling.HELD, Ruling.REFUSED, Ruling.UNDECIDED)


def ended(told: Json) -> Json:
    """Return how an attempt ended, with what blocked it."""
    if "obstacle" in as_table(told) or not text_of(as_table(told), "needs").startswith(NO_FIX):
        return told
    return {**as_table(told), "obstacle": str(Obstacle.NO_FIX)}


def skipped_as(event: Event) -> str:
    """Return the outcome or ruling that a skipped test shares; reasons used to begin with it."""
    if "as" in event or text_of(event, "by"):
        return text_of(event, "as")
    reason = text_of(event, "reason")
    return next((str(each) for each in REQUIRE_A_FIX if reason.startswith(each)), "")


LIMITS = {
    ("run_budget", "cost"): "max_cost",
    ("run_budget", "tokens"): "max_tokens",
    ("run_budget", "minutes"): "max_time",
    ("run_budget", "agents"): "max_launches",
    ("agent_budget", "cost"): "agent_max_cost",
    ("agent_budget", "tokens"): "agent_max_tokens",
}


def options(told: Json) -> Json:
    """Return options, or changes of some, with each limit as an option."""
    if not isinstance(told, dict):
        return told
    found = dict(told)
    for (budget, limit), name in LIMITS.items():
        value = table_of(told, budget).get(limit)
        if isinstance(value, (int, float)):
            found[name] = value * 60 if limit == "minutes" else value
    return found
