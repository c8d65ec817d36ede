"""The real OpenCode under mngr: what the arc that all programs share does not cover."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cli import Cli
from tests.support.real import PATIENCE, Stage, stage


@pytest.fixture
def opencode(local: Cli) -> Iterator[Stage]:
    with stage(local, "opencode") as ready:
        yield ready


@pytest.mark.soak
def test_one_run_without_a_screen(opencode: Stage) -> None:
    server, cli = opencode.server, opencode.cli
    server.on("once:", say="Looking.", run="echo made > made").then(say="It is made.")
    prompt = "once: make  it\nfor 007"
    words = ("create", "one", "opencode", "--foreground", "-m", prompt)
    done = cli(*words, timeout=PATIENCE).ok()
    assert "It is made." in done.out
    assert (cli.work_dir("one") / "made").exists()
    assert opencode.state("one")[0] == "DONE"
    assert server.conversation("once:").prompts == [prompt]
    [row] = cli("usage", "one", "--format", "json").ok().json()["usage"]
    assert row["output"] == server.usage.output > 0
    told = [turn["text"] for turn in opencode.transcript("one")]
    assert told[0] == prompt and told[-1] == "It is made."
