"""The runs of a home: where they are kept, and the notes that steer one from outside."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from mngr.errors import NotFound, nearest
from mngr.struct import Json
from mngr_tmr.fold import fold
from mngr_tmr.journal import NAME, read
from mngr_tmr.model import Run


def root(home: str) -> Path:
    return Path(home) / "tmr"


def names(home: str) -> list[str]:
    """Newest last."""
    folders = [each.parent for each in root(home).glob(f"*/{NAME}")]
    return [each.name for each in sorted(folders, key=_begun)]


def _begun(folder: Path) -> float:
    event = next(iter(read(folder)), {})
    time = event.get("time")
    return float(time) if isinstance(time, (int, float)) else 0.0


def find(home: str, name: str) -> Path:
    """The folder of a run; of the newest where none is named."""
    known = names(home)
    if not name:
        if known:
            return root(home) / known[-1]
        raise NotFound("there are no runs yet", "begin one with `mngr tmr run`")
    if name in known:
        return root(home) / name
    near = nearest(name, known)
    hint = f"did you mean {near!r}?" if near else "see `mngr tmr list`"
    raise NotFound(f"no run {name!r}", hint)


def load(folder: Path) -> Run:
    return fold(read(folder))


# controls: files that appear by rename, and that the one writer of the journal takes


def send(folder: Path, order: Mapping[str, Json]) -> Path:
    control = folder / "control"
    control.mkdir(exist_ok=True)
    stem = f"{len(list(control.iterdir())):06d}-{secrets.token_hex(4)}"
    fresh = control / f".{stem}"
    fresh.write_text(json.dumps(order))
    target = control / f"{stem}.json"
    fresh.rename(target)
    return target


def take(folder: Path) -> list[dict[str, Json]]:
    """Oldest first; a file that is not an order of ours is set aside."""
    control = folder / "control"
    try:
        found = sorted(each for each in os.listdir(control) if each.endswith(".json"))
    except FileNotFoundError:
        return []
    orders = []
    for name in found:
        path = control / name
        order = _order(path)
        path.unlink(missing_ok=True)
        if order is not None:
            orders.append(order)
    return orders


def _order(path: Path) -> dict[str, Json] | None:
    try:
        order = json.loads(path.read_bytes()[: 1 << 16])
    except (OSError, ValueError):
        return None
    return order if isinstance(order, dict) and isinstance(order.get("action"), str) else None
