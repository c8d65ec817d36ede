"""The CLI as a fixture, on two hosts."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.cli import Cli, until
from tests.support.scheduling import pytest_xdist_make_scheduler
from tests.support.skips import pytest_configure

__all__ = ["pytest_configure", "pytest_xdist_make_scheduler"]

# A shell starts what it puts into the background with Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Two loaded cores are no place for deadlines on single examples. `make soak` tries many more.
settings.register_profile("mngr", deadline=None, max_examples=40)
settings.register_profile("soak", deadline=None, max_examples=1000)
settings.load_profile("mngr")


def ended(cli: Cli) -> None:
    """A process that begins in the moment of its end, a hook say, may be seen after it."""
    cli.close()
    until(lambda: not cli.processes(), what="the test left processes running")


@pytest.fixture(params=["local", "bare"])
def mngr(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cli]:
    """The CLI in a world of its own, on the local host and again on one behind `env -i sh`."""
    cli = Cli(tmp_path, provider=request.param)
    yield cli
    ended(cli)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Cli]:
    """Only the local host: for what does not depend on where agents run."""
    cli = Cli(tmp_path)
    yield cli
    ended(cli)


@pytest.fixture(scope="session", autouse=True)
def _for_pytest_in_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A pytest that a test starts neither removes what earlier runs left, 40 s for 100,000 files,
    nor loads hypothesis, which takes three times as long as all the rest of it."""
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(tmp_path_factory.mktemp("inner"))
    os.environ["PYTEST_ADDOPTS"] = "-p no:hypothesispytest"
