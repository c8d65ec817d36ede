"""Orders from outside, once they reach the one process that may write the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mngr.struct import Json
from mngr_tmr.codec import from_json, to_json
from mngr_tmr.model import Options, Run

Note = Callable[[str, Mapping[str, Json]], None]


def obey(run: Run, note: Note, orders: Sequence[Mapping[str, Json]]) -> None:
    """Each is journalled with what follows from it; `run.cancelled` tells of the last word."""
    for order in orders:
        action = order.get("action")
        if action == "retune" and not _fits(run, order.get("options")):
            continue  # whatever it is, in the journal it would stop every reader from now on
        note("control", order)
        if action == "pause":
            note("paused", {"reason": "paused by hand", "until": 0.0})
        elif action == "resume":
            note("resumed", {})


def _fits(run: Run, changes: Json) -> bool:
    before = to_json(run.options)
    assert isinstance(before, dict)
    try:
        from_json(Options, {**before, **changes} if isinstance(changes, dict) else None)
    except ValueError:
        return False
    return True
