"""Fixtures: the real programs, each with its own home."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cli import Cli
from tests.support.real import Stage, stage

# Each start of OpenCode takes 12 s of CPU time, and no setting of its changes that.
SLOW = pytest.param("opencode", marks=pytest.mark.soak)


@pytest.fixture(params=["claude", "codex", SLOW])
def real(request: pytest.FixtureRequest, local: Cli) -> Iterator[Stage]:
    with stage(local, request.param) as ready:
        yield ready
