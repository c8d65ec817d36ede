"""The runs of a home: where they are kept, and the notes that steer one from outside."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from mngr.errors import NotFound, nearest
from mngr.model.struct import Json
from mngr_tmr.journal.events import as_table, loaded, time_of
from mngr_tmr.journal.fold import fold
from mngr_tmr.journal.journal import NAME, read
from mngr_tmr.journal.model import Run


def root(home: str) -> Path:
    return Path(home) / "tmr"


def trash(home: str) -> Path:
    """Runs that were removed, each with the time in its name."""
    return root(home) / "trash"


def names(home: str) -> list[str]:
    """Newest last."""
    folders = [each.parent for each in root(home).glob(f"*/{NAME}")]
    return [each.name for each in sorted(folders, key=_begun)]


def _begun(folder: Path) -> float:
    return time_of(next(iter(read(folder)), {}))


def find(home: str, name: str) -> Path:
    """The folder of a run; of the newest where none is named."""
    known = names(home)
    if not name:
        if known:
            return root(home) / known[-1]
        raise NotFound("there are no runs yet", "start one with `mngr tmr run`")
    if name in known:
        return root(home) / name
    near = nearest(name, known)
    hint = f"did you mean {near!r}?" if near else "see `mngr tmr list`"
    raise NotFound(f"no run {name!r}", hint)


def load(folder: Path) -> Run:
    return fold(read(folder))


# controls: files that appear by rename, and stay until the one writer of the journal has them


def send(folder: Path, order: Mapping[str, Json]) -> Path:
    control = folder / "control"
    control.mkdir(exist_ok=True)
    stem = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
    fresh = control / f".{stem}"
    fresh.write_text(json.dumps(order))
    target = control / f"{stem}.json"
    fresh.rename(target)
    return target


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
            if order is None:  # not of ours, and would be found again for ever
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
