"""A plugin with which a test ends mngr at a step, or has it wait there.

`MNGR_KILL_AT=recorded` ends it with SIGKILL; `MNGR_PAUSE_AT=recorded:/path` makes `/path.there` and
waits for `/path`. Only the tests load it: `Cli` does, for a command that is given one of these.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mngr.ops import steps
from mngr.plugins.registry import Registry
from tests.support.cli import KILL_AT, PAUSE_AT, until


def register(registry: Registry) -> None:
    steps.reached = _reached


def _reached(name: str) -> None:
    if name == os.environ.get(KILL_AT):
        os.kill(os.getpid(), signal.SIGKILL)
    step, _, gate = os.environ.get(PAUSE_AT, "").partition(":")
    if name == step:
        Path(f"{gate}.there").touch()
        until(Path(gate).exists, 120, f"the test opens {gate}")
