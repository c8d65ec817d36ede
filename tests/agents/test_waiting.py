"""When a real program is WAITING, and why: not before it has begun, nor once it can continue."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from mngr.api import Mngr
from mngr.errors import Refused
from mngr.ops.talk import dialogs
from tests.support.cli import Cli, until
from tests.support.real import FREE, PATIENCE, Stage, stage


@pytest.fixture
def codex(local: Cli) -> Iterator[Stage]:
    with stage(local, "codex") as ready:
        yield ready


def test_who_waits_right_after_a_prompt_waits_for_its_answer(real: Stage) -> None:
    real.server.on("first:", say="One.", hold="first")
    real.server.on("second:", say="Two.", hold="second")
    real.server.on("third:", say="Three.", hold="third")
    real.server.on("fourth:", say="Four.", hold="fourth")
    real.create("fox", "first: think")
    waits_for_the_answer(real, "first")
    real.say("fox", "second: think on").ok()
    waits_for_the_answer(real, "second")
    # one that has to wait until another was answered
    real.say("fox", "third: think on").ok()
    real.server.until_held("third")
    assert "queued" in real.say("fox", "fourth: think again", "--format", "json").ok().out
    waits_for_the_answer(real, "fourth", first="third")


def waits_for_the_answer(real: Stage, gate: str, first: str = "") -> None:
    waiting = real.cli.start("wait", "fox", "--timeout", "4m")
    try:
        real.server.release(first)
        real.server.until_held(gate)
        assert waiting.poll() is None, f"{real.state('fox')}: {waiting.communicate()}"
        real.server.release(gate)
        out, _ = waiting.communicate(timeout=PATIENCE)
        assert out.decode().split() == ["fox", "WAITING", "end_of_turn"]
    finally:
        waiting.kill()
        waiting.wait()


def test_what_a_program_asks_before_it_begins_is_a_reason_to_wait(
    codex: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codex asks whether to trust a folder that is not the agent's own."""
    elsewhere = codex.cli.base / "elsewhere"
    elsewhere.mkdir()
    codex.cli.git("init", "-q", cwd=elsewhere)
    codex.create("fox", "", *FREE["codex"][2:], "--cd", str(elsewhere))
    for name, seconds in {"AWHILE": 2.0, "QUIET": 1.0, "STANDS": 2.0}.items():
        monkeypatch.setattr(dialogs, name, seconds)
    monkeypatch.setenv("MNGR_HOST_DIR", str(codex.cli.controller_home))
    api = Mngr()

    def asks() -> bool:
        [fox] = api.list()
        return fox.state == "WAITING" and fox.verdict.reason.startswith("dialog: ")

    until(asks, 60, "the dialog is seen")
    [fox] = api.list()
    assert "Trust this folder" in fox.verdict.reason and fox.verdict.reason.isprintable()
    with pytest.raises(Refused, match=r"is not ready.*Trust.*nothing was sent"):
        api.message("fox", "hello")


@pytest.mark.parametrize("real", ["claude", "codex"], indirect=True)
def test_a_quota_that_has_come_back_says_so(real: Stage) -> None:
    if real.program == "claude":
        del real.cli.env["ANTHROPIC_API_KEY"]
        real.cli.env |= real.server.environment("claude", plan=True)
    reset = int(time.time()) + 10
    real.server.on("much:", quota=reset)
    real.create("fox", "much: of everything")
    real.reaches("fox", "WAITING", "quota: ")
    until(lambda: "was reset" in real.state("fox")[1], 60, "it has been reset")
    assert time.time() >= reset
    said = real.cli("answer", "fox", "--allow").fails(
        1, "fox has no permission request: it is WAITING (quota"
    )
    assert len(said.err.splitlines()) == 1
