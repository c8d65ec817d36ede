"""A short audit: random commands at once, some killed; `make soak` runs long ones."""

from __future__ import annotations

import pytest

from tests.support.audit import Audit
from tests.support.cli import Cli


@pytest.mark.parametrize(("seed", "purging"), [(1, False), (2, True)])
def test_random_commands_and_kills_lose_nothing(mngr: Cli, seed: int, purging: bool) -> None:
    audit = Audit(mngr, seed, purging).run(workers=8, turns=4)
    assert audit.made and audit.killed
    audit.check()
