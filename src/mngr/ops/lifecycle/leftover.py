"""One thing that `gc` removes."""

from __future__ import annotations

from collections.abc import Callable

from mngr.errors import MngrError
from mngr.hosts.base import Host
from mngr.model.struct import Struct


class Leftover(Struct):
    """One thing to remove, why, and how."""

    kind: str
    what: str
    why: str
    remove: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.what}: {self.why}"


def remover(host: Host, *words: str) -> Callable[[], None]:
    """Return a function that runs a command to remove something and raises if it fails."""

    def remove() -> None:
        done = host.run(words, timeout=60)
        if done.code:
            raise MngrError(done.complaint)

    return remove
