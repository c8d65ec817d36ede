"""The switches MNGR_E2E_RUN, MNGR_E2E_NOOP and MNGR_E2E_COVERAGE.

They are read from the environment, unless `take` was called: a test could read the environment too,
and expect something else of a command that does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

RUN, NOOP, COVERAGE = "MNGR_E2E_RUN", "MNGR_E2E_NOOP", "MNGR_E2E_COVERAGE"

_given: Mapping[str, str] = os.environ


def take(given: Mapping[str, str]) -> None:
    """Use these switches from now on, instead of the environment."""
    global _given
    _given = given


def text(name: str) -> str:
    return _given.get(name, "")


def is_on(name: str) -> bool:
    return text(name) not in ("", "0")
