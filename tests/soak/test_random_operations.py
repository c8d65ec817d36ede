"""The long audit: hundreds of random commands from eight processes, and random kills."""

from __future__ import annotations

import pytest

from tests.support.audit import SEED, Audit
from tests.support.cli import Cli

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("purging", [False, True])
@pytest.mark.parametrize("number", range(4))
def test_hundreds_of_random_commands_and_kills_lose_nothing(
    local: Cli, number: int, purging: bool
) -> None:
    print(f"MNGR_SOAK_SEED={SEED}, run {number}")
    audit = Audit(local, SEED + number, purging).run(workers=8, turns=45)
    print(f"{audit.ran} commands, {audit.killed} killed, {len(audit.made)} files and commits")
    assert audit.made and audit.killed
    audit.check()
