"""Notice a full disk of this machine, so that it is not mistaken for a result of an agent."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

LEAST = 1 << 20
"""Free bytes; with fewer, neither a commit nor a checkout can be written."""


def full(*places: str | Path) -> str:
    """Return the first of these directories whose file system is full, or ""."""
    for place in places:
        with suppress(OSError):
            usage = shutil.disk_usage(place)
            if usage.total and usage.free < LEAST:  # some network file systems report 0 of 0
                return str(place)
    return ""


def require_space(*places: str | Path) -> None:
    place = full(*places)
    if place:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place)
