"""The time limit, and the messages on the agent's terminal."""

from __future__ import annotations

import os
import sys
import threading
import time

LEAST = 0.1


class Stopwatch:
    """Counts time on a loaded machine only in part, because the budget is for an idle core."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.began = self._looked = time.monotonic()
        self._spent = 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> float:
        with self._lock:  # the threads of a search share one stopwatch
            now = time.monotonic()
            self._spent += (now - self._looked) * _share_now()
            self._looked = now
            return self._spent

    @property
    def left(self) -> float:
        return self.budget - self.spent

    def wall(self, seconds: float) -> float:
        """Return how long to wait for work that takes so many seconds of an idle core."""
        return seconds / _share_now()

    def say(self, text: str) -> None:
        """Print one line, with the seconds since the start."""
        safe = text.encode("utf-8", "backslashreplace").decode()
        sys.stdout.write(f"{time.monotonic() - self.began:6.1f}s  {safe}\n")
        sys.stdout.flush()


def _share_now() -> float:
    return share(os.getloadavg()[0], os.cpu_count() or 1)


def share(load: float, cores: int) -> float:
    """Return the part of a core that one of `load` programs gets."""
    return max(LEAST, min(1.0, cores / load)) if load > 0 else 1.0
