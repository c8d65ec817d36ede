"""The tutorial as its reader goes through it: every block after the other, in one world."""

from __future__ import annotations

import re

import pytest

from mngr_e2e import E2eSession, expect
from mngr_e2e.blocks import parse
from tests.e2e.world import host_dir

# These want a person who ends them, or a terminal.
ATTENDED = re.compile(r"^mngr (observe|.* --watch|.* --follow|connect \w+( --read-only.*)?$)", re.M)


@pytest.mark.soak
def test_every_block_works_after_those_before_it(e2e: E2eSession) -> None:
    blocks = [block for block in parse((e2e.root / "tutorial.sh").read_text()) if block.needs_test]
    followed = [block for block in blocks if not ATTENDED.search(block.text)]
    assert len(followed) == len(blocks) - 6
    host_dir(e2e).mkdir(exist_ok=True)
    (e2e.home / ".mngr").symlink_to(host_dir(e2e))
    for block in followed:
        expect(e2e.run(f"set -e\n{block.text}", comment=f"line {block.line}")).to_succeed()
    expect(e2e.run("mngr list").stdout).to_equal("No agents found\n")
