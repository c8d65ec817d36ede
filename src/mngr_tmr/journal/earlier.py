"""Events of earlier versions, as this version would have written them."""

from __future__ import annotations

from mngr.model.struct import Json
from mngr_outcome.outcome import Obstacle
from mngr_tmr.journal.events import as_table, text_of

NO_FIX = ("more time", "a manual fix")
"""The needs of a mechanic that found no fix, when nothing else marked it."""


def ended(told: Json) -> Json:
    """Return how a try ended, with what blocked it."""
    if "obstacle" in as_table(told) or not text_of(as_table(told), "needs").startswith(NO_FIX):
        return told
    return {**as_table(told), "obstacle": str(Obstacle.NO_FIX)}
