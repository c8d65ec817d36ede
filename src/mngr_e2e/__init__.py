"""End-to-end tests for any command line, with tutorials as their source."""

from __future__ import annotations

from mngr_e2e.expect import expect
from mngr_e2e.results import CommandResult
from mngr_e2e.session import E2eSession

__all__ = ["CommandResult", "E2eSession", "expect"]
