"""Limits and replies with real programs: the watcher's meter against what the server served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cli import Cli
from tests.support.real import PATIENCE, Stage, stage


@pytest.fixture(params=["claude", "codex"])
def real(request: pytest.FixtureRequest, local: Cli) -> Iterator[Stage]:
    with stage(local, request.param) as ready:
        yield ready


def test_over_its_tokens_it_ends_and_answers_again_when_it_may(real: Stage) -> None:
    server, cli = real.server, real.cli
    server.on("first:", say="That is much.")
    server.on("second:", say="Here I am.")
    real.create("fox", "first: begin", options=("--max-tokens", "10"))
    cli("wait", "fox", "FAILED", "--timeout", str(PATIENCE), timeout=PATIENCE + 30).ok()
    served = server.conversation("first:").usage
    used = served.input + served.output + served.cache_read + served.cache_write
    agent = cli.agent("fox")
    assert agent["state_reason"] == f"over its limit of 10 tokens ({used} used)"
    assert agent["exit_code"] == 124

    cli("limit", "fox", "--max-tokens", "none", "--max-cost", "100").ok()
    cli("start", "fox", timeout=PATIENCE).ok()
    reply = real.say("fox", "second: are you there", "--wait", "--timeout", str(PATIENCE)).ok()
    assert reply.out == "Here I am.\n"
    assert server.conversation("second:").prompts == ["first: begin", "second: are you there"]
