"""Inspect the input queue of a terminal on this machine."""

from __future__ import annotations

import fcntl
import os
import struct
import termios


def unread(path: str) -> int | None:
    """Return the bytes typed and not yet read; None if the terminal no longer exists."""
    try:
        terminal = os.open(path, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(terminal, termios.FIONREAD, struct.pack("i", 0))
        return int(struct.unpack("i", answer)[0])
    except OSError:
        return None
    finally:
        os.close(terminal)
