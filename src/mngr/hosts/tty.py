"""What a terminal on this machine still holds for its program."""

from __future__ import annotations

import fcntl
import os
import struct
import termios


def unread(path: str) -> int | None:
    """Bytes typed and not read yet; None when the terminal is gone."""
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
