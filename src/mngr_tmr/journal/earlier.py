"""Events of earlier versions, as this version would have written them."""

from __future__ import annotations

from mngr.model.struct import Json
from mngr_outcome.outcome import Obstacle
from mngr_tmr.journal.events import as_table, table_of, text_of

NO_FIX = ("more time", "a manual fix")
"""The needs of a mechanic that found no fix, when nothing else marked it."""


def ended(told: Json) -> Json:
    """Return how a try ended, with what blocked it."""
    if "obstacle" in as_table(told) or not text_of(as_table(told), "needs").startswith(NO_FIX):
        return told
    return {**as_table(told), "obstacle": str(Obstacle.NO_FIX)}


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
