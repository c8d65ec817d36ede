from __future__ import annotations

import pytest

from tests.support.cli import Cli


@pytest.fixture
def mngr(local: Cli) -> Cli:
    return local
