"""Find and load the runs of a home."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mngr.errors import NotFound, nearest
from mngr_tmr.journal.events import time_of
from mngr_tmr.journal.fold import fold
from mngr_tmr.journal.journal import NAME, read
from mngr_tmr.journal.model import Run

if TYPE_CHECKING:
    from mngr.api import Agent, Mngr


def root(home: str) -> Path:
    return Path(home) / "tmr"


def trash(home: str) -> Path:
    """Return the folder of removed runs, each with the time of its removal in its name."""
    return root(home) / "trash"


def names(home: str) -> list[str]:
    """Return the names of all runs, newest last."""
    folders = [each.parent for each in root(home).glob(f"*/{NAME}")]
    return [each.name for each in sorted(folders, key=_begun)]


def _begun(folder: Path) -> float:
    return time_of(next(iter(read(folder)), {}))


def find(home: str, name: str) -> Path:
    """Return the folder of a run; without a name, of the newest run."""
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


def agents(api: Mngr, run: str, role: str = "", ids: Sequence[str] | None = None) -> list[Agent]:
    """Return the agents of a run, or those with one role or these ids, by their labels."""
    found = []
    for agent in api.list(ids):
        record = agent.evidence.record
        labels = record.labels if record is not None else {}
        if labels.get("tmr") == run and role in ("", labels.get("role")):
            found.append(agent)
    return found
