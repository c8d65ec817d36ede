"""The time there is, and what is said meanwhile."""

from __future__ import annotations

import sys
import time


class Clock:
    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.began = time.monotonic()

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        return self.budget - self.spent

    def say(self, text: str) -> None:
        """One line on the agent's terminal, with the seconds since the start."""
        safe = text.encode("utf-8", "backslashreplace").decode()
        sys.stdout.write(f"{self.spent:6.1f}s  {safe}\n")
        sys.stdout.flush()
