"""A plugin that ends mngr with SIGKILL at the step that `MNGR_KILL_AT` names.

Only the tests load it: `Cli` does, for a command that is given this variable.
"""

from __future__ import annotations

import os
import signal

from mngr.ops import steps
from mngr.plugins import Registry
from tests.support.cli import KILL_AT


def register(registry: Registry) -> None:
    steps.reached = _killed


def _killed(name: str) -> None:
    if name == os.environ[KILL_AT]:
        os.kill(os.getpid(), signal.SIGKILL)
