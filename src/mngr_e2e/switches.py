"""What the person who runs the tests asks for: MNGR_E2E_RUN, MNGR_E2E_NOOP, MNGR_E2E_COVERAGE.

They come from the environment, unless a judge hands them over: a test could read them there, and
expect something else of a command that does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

RUN, NOOP, COVERAGE = "MNGR_E2E_RUN", "MNGR_E2E_NOOP", "MNGR_E2E_COVERAGE"

_given: Mapping[str, str] = os.environ


def take(given: Mapping[str, str]) -> None:
    """From now on these, and nothing from the environment."""
    global _given
    _given = given


def text(name: str) -> str:
    return _given.get(name, "")


def is_on(name: str) -> bool:
    return text(name) not in ("", "0")
