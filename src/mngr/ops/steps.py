"""Named step boundaries, so that a test can kill mngr at each of them.

`MNGR_KILL_AT=recorded` ends the process there with SIGKILL, as a crash would.
"""

from __future__ import annotations

import os


def step(name: str) -> None:
    if os.environ.get("MNGR_KILL_AT") == name:
        os.kill(os.getpid(), 9)
