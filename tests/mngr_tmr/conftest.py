from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cli import Cli
from tests.support.robots import Robots


@pytest.fixture
def robots(local: Cli) -> Iterator[Robots]:
    robots = Robots(local, seconds=0)
    yield robots
    robots.release()
