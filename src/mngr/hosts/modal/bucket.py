"""One limit of requests per second for all local processes that share a home."""

from __future__ import annotations

import os
import time
from fcntl import LOCK_EX, flock

RATE, BURST = 18.0, 4.0
"""At most 23 requests are sent in any second; Modal accepts about 25 per account."""


class Bucket:
    """A file with the time at which the next request may begin."""

    def __init__(self, path: str, rate: float = RATE, burst: float = BURST) -> None:
        self._path, self._rate, self._burst = path, rate, burst

    def take(self, now: float = 0.0) -> float:
        """Reserve the next request; return the seconds to wait before it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            flock(fd, LOCK_EX)
            now = now or time.time()
            slot = max(self._next(fd, now), now - self._burst / self._rate)
            os.pwrite(fd, f"{slot + 1 / self._rate:020.6f}".encode(), 0)
        finally:
            os.close(fd)
        return max(0.0, slot - now)

    def _next(self, fd: int, now: float) -> float:
        """Return the recorded time; 0.0 if it is invalid, or too far ahead (clock set back)."""
        try:
            found = float(os.pread(fd, 20, 0))
        except ValueError:
            return 0.0
        return found if found < now + 600 else 0.0
