"""The CLI as a fixture, on two hosts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.cli import Cli
from tests.support.skips import pytest_configure

__all__ = ["pytest_configure"]

# A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Two loaded cores are no place for deadlines on single examples.
settings.register_profile("mngr", deadline=None)
settings.load_profile("mngr")


@pytest.fixture(params=["local", "bare"])
def mngr(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    """The CLI in a world of its own, on the local host and again on one behind `env -i sh`."""
    cli = Cli(tmp_path, provider=request.param)
    yield cli
    cli.close()
    assert not cli.processes(), "the test left processes running"


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Cli]:
    """Only the local host: for what does not depend on where agents run."""
    cli = Cli(tmp_path)
    yield cli
    cli.close()
    assert not cli.processes(), "the test left processes running"
