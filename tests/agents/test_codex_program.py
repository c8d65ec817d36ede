"""The real Codex under mngr: what the arc that all programs share does not cover."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.model import Usage
from tests.support.programs import path_with, program
from tests.support.real import FREE, PATIENCE, Stage, stage


@pytest.fixture
def codex(local: Cli) -> Iterator[Stage]:
    with stage(local, "codex") as ready:
        yield ready


def test_a_nested_codex_changes_nothing_and_a_busy_one_queues(codex: Stage) -> None:
    server, cli = codex.server, codex.cli
    words = " ".join(FREE["codex"][2:])
    # By its full path, because commands run in a login shell, whose PATH may differ.
    command = f"{program('codex')}/codex exec {words} 'nested: hello'"
    nested = f"{command} > said 2> complaints; echo $? >> said"
    dear = Usage(input=10, output=5000)
    server.on("nested:", say="I am inside.", run="true", usage=dear).then(say="Inside is done.")
    server.on("outer:", say="Starting it.", run=nested).then(say="Outer is done.", hold="outer")
    server.on("queued:", say="Now that.")
    server.on("later:", say="Later.")
    codex.create("fox", "outer: start another")
    server.until_held("outer", PATIENCE)
    # The nested one has begun and ended, in the same home.
    assert (cli.work_dir("fox") / "said").read_text() == "Inside is done.\n0\n"
    assert codex.state("fox") == ("RUNNING", "working")
    assert "queued" in codex.say("fox", "queued: and this", "--format", "json").ok().out
    server.release("outer")
    codex.answered("fox", "queued:")

    told = [turn["text"] for turn in codex.transcript("fox")]
    assert "Starting it." in told and "I am inside." not in told
    [row] = cli("usage", "fox", "--format", "json").ok().json()["usage"]
    assert row["output"] > 5000  # the tokens of nested programs are paid for too

    cli("restart", "fox", timeout=PATIENCE).ok()
    codex.say("fox", "later: still you").ok()
    prompts = codex.answered("fox", "later:").prompts
    assert prompts == ["outer: start another", "queued: and this", "later: still you"]


def test_a_used_up_plan_is_a_quota_and_a_draft_is_not_sent_along(codex: Stage) -> None:
    """On a terminal of twenty columns, where every line of the program is broken."""
    server, cli = codex.server, codex.cli
    server.on("much:", quota=int(time.time()) + 3600)
    codex.create("fox", options=("--tmux-width", "20", "--tmux-height", "8"))
    codex.reaches("fox", "WAITING", "end_of_turn")
    cli.tmux("send-keys", "-t", f"={cli.agent('fox')['id']}:agent", "-l", "a draft")
    text = "much: is said in a line that is longer than the terminal is wide\nand in another"
    codex.say("fox", text).ok()
    assert codex.reaches("fox", "WAITING", "quota").startswith("quota: resets ")
    assert server.conversation("much:").prompts == [text]


def test_one_run_without_a_screen(codex: Stage) -> None:
    server, cli = codex.server, codex.cli
    server.on("once:", say="Looking.", run="echo made > made").then(say="It is made.")
    server.on("wrong:", fail=400, text="no such thing")
    words = ("codex", "--foreground", "--pass-env", "SCRIPTED_API_KEY")
    done = cli("create", "one", *words, "-m", "once: make it", "--", *FREE["codex"][2:]).ok()
    assert done.out.strip().endswith("It is made.")
    assert (cli.work_dir("one") / "made").exists()
    assert codex.state("one")[0] == "DONE"
    [row] = cli("usage", "one", "--format", "json").ok().json()["usage"]
    assert row["output"] == server.usage.output > 0
    assert codex.transcript("one")[0]["text"] == "once: make it"

    failed = cli("create", "two", *words, "-m", "wrong: do it", "--", *FREE["codex"][2:])
    assert failed.code == 1 and "no such thing" in failed.err
    assert codex.state("two")[0] == "FAILED"


def test_without_a_login_it_says_so_instead_of_running_for_ever(local: Cli) -> None:
    local.env["PATH"] = f"{local.env['PATH'].split(':', 1)[0]}:{path_with('codex')}"
    assert not Path(local.env["HOME"], ".codex").exists()
    local("create", "fox", "codex", "--no-connect", "-m", "go").ok()
    agent = local.agent("fox")
    assert (agent["state"], agent["state_reason"].split(":")[:2]) == (
        "WAITING",
        ["error", " not logged in"],
    )
