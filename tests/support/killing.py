"""A plugin with which a test kills mngr at a step, or makes it wait there.

`MNGR_KILL_AT=recorded` kills it with SIGKILL; `MNGR_PAUSE_AT=recorded:/path` creates `/path.there`
and waits for `/path`. Only tests load it: `Cli` does, for a command with one of these variables.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from shlex import quote

from mngr.ops import steps
from mngr.plugins.registry import Registry
from tests.support.cli import KILL_AT, PAUSE_AT, until


def register(registry: Registry) -> None:
    steps.reached = _reached
    steps.within = _within


def _reached(name: str) -> None:
    if name == os.environ.get(KILL_AT):
        os.kill(os.getpid(), signal.SIGKILL)
    step, _, gate = os.environ.get(PAUSE_AT, "").partition(":")
    if name == step:
        Path(f"{gate}.there").touch()
        until(Path(gate).exists, 120, f"the test opens {gate}")


def _within(name: str) -> str:
    """Return the shell line that does the same at a step of a script, on this machine."""
    if name == os.environ.get(KILL_AT):
        return f"kill -KILL {os.getpid()} $$\n"
    step, _, gate = os.environ.get(PAUSE_AT, "").partition(":")
    if name != step:
        return ""
    path = quote(gate)
    return f": > {path}.there; until [ -e {path} ]; do sleep 0.05; done\n"
