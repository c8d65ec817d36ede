"""Hosts known to this controller, one file each, written before a host is created or first used.

$MNGR_HOST_DIR/hosts/<provider>/<name>.json
"""

from __future__ import annotations

import os

from mngr import files
from mngr.errors import BadRecord, Taken
from mngr.model import jsontext
from mngr.model.records import decode
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class HostNote(Struct):
    """A host, and the lease if mngr created it."""

    id: str = ""
    name: str
    provider: str
    handle: str = ""
    """The provider's id of the host; empty until the host is created."""
    made: bool = False
    """Whether mngr created it, and so may destroy it."""
    time: float = 0.0
    lifetime: float | None = None
    idle: float | None = None
    build: dict[str, str] = {}
    """The build arguments; they show where to look for a host whose creation was interrupted."""
    tags: dict[str, str] = {}
    home: str = ""
    user: int = 0
    shell: str = ""
    """The name of the user's login shell, which runs the commands that ssh sends."""
    agents: tuple[str, ...] = ()
    """Agents that ran when the host was stopped; starting the host starts them."""


def _path(home: str, provider: str, name: str) -> str:
    return os.path.join(home, "hosts", provider, f"{name}.json")


def write(home: str, note: HostNote, *, new: bool = False) -> None:
    """Write a note; a `new` note never replaces another."""
    path = _path(home, note.provider, note.name)
    text = jsontext.dumps(note.to_json())
    if not _put(path, text, new):
        raise Taken(f"the host {note.name!r} already exists", "see `mngr host list`")


def rewrite(home: str, note: HostNote) -> None:
    """Change the note of a host, unless the host was destroyed since its note was read."""
    now = read(home, note.provider, note.name)
    if now and now.id == note.id:
        write(home, note)


def _put(path: str, text: str, new: bool) -> bool:
    if new:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return files.create(path, text.encode(), durable=True)
    files.replace(path, text.encode(), durable=True)
    return True


def read(home: str, provider: str, name: str) -> HostNote | None:
    try:
        with open(_path(home, provider, name), "rb") as file:
            return HostNote.from_json(decode(file.read()))
    except (FileNotFoundError, BadRecord):
        return None


def known(home: str, provider: str) -> Iterator[HostNote]:
    try:
        names = sorted(os.listdir(os.path.join(home, "hosts", provider)))
    except FileNotFoundError:
        return
    for name in names:
        if name.endswith(".json") and (note := read(home, provider, name[:-5])):
            yield note


def forget(home: str, provider: str, name: str) -> None:
    note = read(home, provider, name)
    files.remove(_path(home, provider, name))
    if note and note.id:
        for folder in ("ended", "asked"):
            files.remove(os.path.join(home, "hosts", folder, note.id))


def ended(home: str, host_id: str, why: str = "") -> str:
    """Return, and with `why` record, why a host ended: some engines forget it after minutes.

    This is not in the note, because a reader of a host must not recreate the note of a destroyed
    one.
    """
    path = os.path.join(home, "hosts", "ended", host_id)
    try:
        with open(path, encoding="utf-8") as file:
            before = file.read()
    except FileNotFoundError:
        before = ""
    if why and why != before:
        _put(path, why, new=False)
    return why or before


def controller(home: str) -> str:
    """Return the id that hosts of this home carry, so that no other home ends them."""
    path = os.path.join(home, "hosts", "controller")
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except FileNotFoundError:
        _put(path, os.urandom(8).hex(), new=True)
        return controller(home)
