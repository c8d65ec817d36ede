"""End-to-end tests for any command line, with tutorials as their source."""

from __future__ import annotations

from mngr_e2e.commands.background import Background
from mngr_e2e.commands.results import Chunk, CommandResult
from mngr_e2e.expect import ExpectationFailed, expect, soft
from mngr_e2e.session import E2eSession

__all__ = [
    "Background",
    "Chunk",
    "CommandResult",
    "E2eSession",
    "ExpectationFailed",
    "expect",
    "soft",
]
