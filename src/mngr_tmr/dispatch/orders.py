"""Orders from outside: `pause`, `unpause`, `retune` and `cancel` send them, the run obeys them.

An order is a file in the run's `control` folder. It appears by rename, and stays until the one
process that may write the journal has it there.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from mngr.errors import BadRecord
from mngr.model.struct import Json
from mngr_tmr.dispatch.roles import Inbox, Note
from mngr_tmr.journal.events import as_table, loaded
from mngr_tmr.journal.model import Run
from mngr_tmr.run.options import retuned


def send(folder: Path, order: Mapping[str, Json]) -> Path:
    """Write an order for the process that works on a run, and return its file."""
    control = folder / "control"
    control.mkdir(exist_ok=True)
    stem = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    fresh = control / f".{stem}"
    fresh.write_text(json.dumps(order))
    return fresh.rename(control / f"{stem}.json")


class ControlFolder:
    """The Inbox of a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "control"

    def waiting(self) -> list[tuple[str, dict[str, Json]]]:
        try:
            names = sorted(each for each in os.listdir(self._folder) if each.endswith(".json"))
        except FileNotFoundError:
            return []
        found = [(name, _order(self._folder / name)) for name in names]
        for name, order in found:
            if order is None:  # an invalid order would be found again at every step
                self.discard(name)
        return [(name, order) for name, order in found if order is not None]

    def discard(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)


def _order(path: Path) -> dict[str, Json] | None:
    try:
        order = as_table(loaded(path.read_bytes()[: 1 << 16]))
    except OSError:
        return None
    return order if isinstance(order.get("action"), str) else None


def obey(run: Run, note: Note, sync: Callable[[], None], inbox: Inbox) -> None:
    """Journal each order, and discard it once that is on the disk.

    After a kill in between, `run.obeyed` keeps it from being journalled twice.
    """
    found = inbox.waiting()
    for name, order in found:
        if name not in run.obeyed and _is_valid(run, order):
            note("control", {**order, "order": name})
    if found:
        sync()
    for name, _ in found:
        inbox.discard(name)


def _is_valid(run: Run, order: Mapping[str, Json]) -> bool:
    """Return whether an order is valid; in the journal it would break every reader."""
    try:
        if order.get("action") == "retune":
            retuned(run.options, order.get("options"))
    except BadRecord:
        return False
    return True
