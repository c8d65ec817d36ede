"""Orders from outside, once they reach the one process that may write the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mngr.errors import BadRecord
from mngr.model.struct import Json
from mngr_tmr.dispatch.roles import Inbox, Note
from mngr_tmr.journal.model import Run
from mngr_tmr.run.options import retuned


def obey(run: Run, note: Note, sync: Callable[[], None], inbox: Inbox) -> None:
    """Each is in the journal before it is gone, and there once, whenever this is killed.

    What follows from it, follows from that one event: see fold.
    """
    found = inbox.waiting()
    for name, order in found:
        if name not in run.obeyed and _fits(run, order):
            note("control", {**order, "order": name})
    if found:
        sync()
    for name, _ in found:
        inbox.discard(name)


def _fits(run: Run, order: Mapping[str, Json]) -> bool:
    """Anything else would, once in the journal, stop every reader from then on."""
    if order.get("action") != "retune":
        return True
    try:
        retuned(run.options, order.get("options"))
    except BadRecord:
        return False
    return True
