from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli


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
