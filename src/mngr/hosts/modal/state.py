"""The state of each Modal host beyond its note: its sandbox, its last snapshot, why it ended.

$MNGR_HOST_DIR/modal/<host id>.json
"""

from __future__ import annotations

import json
import os

from mngr import files
from mngr.errors import BadRecord
from mngr.model.records import decode
from mngr.model.struct import Json, Struct


class ModalState(Struct):
    """The state of one Modal host."""

    sandbox: str = ""
    """The id of its last sandbox."""
    wanted: dict[str, Json] = {}
    """The request for a new sandbox."""
    image: str = ""
    """The last snapshot of its file system."""
    taken: float = 0.0
    ended: str = ""
    """Why its sandbox ended; empty while it runs."""
    stopped: bool = False
    """Whether the snapshot was taken by a stop, so that it is complete."""
    made: float = 0.0
    """When its sandbox was created."""
    ran: float = 0.0
    """Seconds that earlier sandboxes of it ran."""


def path(home: str, host_id: str) -> str:
    return os.path.join(home, "modal", f"{host_id}.json")


def read(home: str, host_id: str) -> ModalState:
    try:
        with open(path(home, host_id), "rb") as file:
            return ModalState.from_json(decode(file.read()))
    except (FileNotFoundError, BadRecord):
        return ModalState()


def write(home: str, host_id: str, state: ModalState) -> ModalState:
    files.replace(path(home, host_id), json.dumps(state.to_json()).encode(), durable=True)
    return state


def forget(home: str, host_id: str) -> None:
    files.remove(path(home, host_id))


def changed(home: str, host_id: str, **changes: Json) -> ModalState:
    kept = read(home, host_id).to_json()
    return write(home, host_id, ModalState.from_json({**kept, **changes}))
