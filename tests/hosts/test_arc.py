"""An agent's whole life, the same on every provider."""

from __future__ import annotations

import shlex

import pytest

from tests.support.cli import Cli, until
from tests.support.lab.machines import Lab
from tests.support.model import ModelServer
from tests.support.places import Place
from tests.support.programs import program
from tests.support.real import FREE, PATIENCE, stage

ECHO = 'while IFS= read -r line; do echo "heard $line"; echo "$line" >> heard.txt; done'

TEXT = "größe 'quoted' $HOME"

# What the tests' Claude Code needs beside its login: no updates, no reports.
PASSED = (
    *("--pass-env", "DISABLE_AUTOUPDATER"),
    *("--pass-env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
)

COMMIT = "git -c user.name=a -c user.email=a@example.com commit -qm"


def run(mngr: Cli, agent: str, command: str) -> str:
    return mngr("exec", agent, command).ok().out.strip()


def test_an_agent_lives_and_ends(place: Place) -> None:
    live(place, ("--", "sh", "-c", ECHO), 15)


@pytest.mark.soak
@pytest.mark.parametrize("place", ["ssh"], indirect=True)
def test_claude_code_lives_and_ends_on_another_machine(place: Place, lab: Lab) -> None:
    """The real program, copied into that machine's root, and a scripted model."""
    lab.machines[0].copy(f"{program('claude')}/claude", "/usr/local/bin/claude")
    server = lab.here(lambda: ModelServer(lab.machines[0].gateway))
    try:
        with stage(place.cli, "claude", server):
            place.cli.patience = PATIENCE
            server.on("größe", say=f"heard {TEXT}", run=f"echo {shlex.quote(TEXT)} >> heard.txt")
            server.on("moved", say="Moved.", run="echo moved >> heard.txt")
            live(place, ("claude", "--pass-login", *PASSED, "--", *FREE["claude"]), PATIENCE)
        # A clone that moves before anything was said to it takes its conversation along.
        asked = sorted(each.prompts for each in server.conversations.values())
        assert asked == [[TEXT], [TEXT, "moved"]]
    finally:
        lab.machines[0].inside("rm", "/usr/local/bin/claude")


def live(place: Place, program: tuple[str, ...], patience: float) -> None:
    mngr, alive = place.cli, ("RUNNING", "WAITING")
    mngr("create", place.at("foo"), "--no-connect", *program).ok()
    assert mngr.state("foo") in alive

    mngr("message", "foo", "-m", TEXT).ok()

    def said(text: str, agent: str) -> None:
        look = "cat heard.txt 2>/dev/null; :"
        until(lambda: text in run(mngr, agent, look), patience, "the message")

    said("größe", "foo")
    until(lambda: f"heard {TEXT}" in mngr("capture", "foo").ok().out, patience, "the answer")
    assert mngr("exec", "foo", "exit 3").code == 3
    run(mngr, "foo", f"echo mine > own.txt && git add own.txt && {COMMIT} own")
    mngr("pull", "foo").ok()
    assert mngr.git("show", "mngr/foo:own.txt") == "mine"

    mngr.write("yours.txt", "yours\n")
    mngr("push", "foo", "yours.txt", "in/yours.txt").ok()
    assert run(mngr, "foo", "cat in/yours.txt") == "yours"
    assert "own.txt" in mngr("diff", "foo", "--stat").ok().out

    mngr("snapshot", "create", "foo", "--name", "before").ok()
    run(mngr, "foo", "echo changed > own.txt; rm in/yours.txt")
    mngr("snapshot", "restore", "foo", "before").ok()
    assert run(mngr, "foo", "cat own.txt in/yours.txt") == "mine\nyours"

    mngr("stop", "foo").ok()
    assert mngr.state("foo") == "STOPPED"
    mngr("pull", "foo", "in/yours.txt", "back.txt").ok()
    assert (mngr.repo / "back.txt").read_text() == "yours\n"
    mngr("start", "foo").ok()
    assert mngr.state("foo") in alive

    mngr("clone", "foo", "twin").ok()
    assert run(mngr, "twin", "cat own.txt in/yours.txt heard.txt").startswith("mine\nyours\ngrö")
    mngr("migrate", "twin", place.other).ok()
    assert mngr.agent("twin")["host"]["name"] == place.other
    assert run(mngr, "twin", "cat own.txt in/yours.txt").startswith("mine\nyours")
    mngr("message", "twin", "-m", "moved").ok()
    said("moved", "twin")

    mngr("destroy", "foo", "--force").ok()
    assert [each["name"] for each in mngr("list", "--format", "json").json()["agents"]] == ["twin"]
    mngr("restore", "foo").ok()
    assert run(mngr, "foo", "cat own.txt in/yours.txt") == "mine\nyours"
    mngr("destroy", "foo", "twin", "--force").ok()
    mngr("gc", "-S", "trash.keep=0s").ok()
    assert "No agents" in mngr("list").ok().out
