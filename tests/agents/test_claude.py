"""Claude Code as an agent, beyond what every program's arc shows: the real program, scripted."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.real import PATIENCE, Stage, stage


@pytest.fixture
def claude(local: Cli) -> Iterator[Stage]:
    with stage(local, "claude") as ready:
        yield ready


def outcome(claude: Stage, name: str, text: str) -> str:
    return claude.say(name, text, "--format", "{outcome}: {detail}").out.strip()


def said_to(claude: Stage, text: str, name: str = "fox") -> list[str]:
    """Return the user messages, without what the program adds about commands."""
    talk = claude.answered(name, text)
    return [each for each in talk.prompts if not each.startswith("<")]


def test_each_message_is_told_for_what_became_of_it(claude: Stage) -> None:
    server, cli = claude.server, claude.cli
    server.on("busy:", say="Wait.", hold="busy", run="true").then(say="I am back.")
    server.on("mine:", say="It is mine.")
    server.on("anew:", say="Begun anew.")
    server.on(".", say="Well.")
    cli.write(".claude/commands/mine.md", "mine: do $ARGUMENTS\n")
    cli.commit("a command of the project's own")

    # the name of a subcommand is as good a prompt as any other
    claude.create("fox", "doctor")
    claude.answered("fox", "doctor")

    # what is said to a busy client is queued, and comes in its order, once; a draft is not sent
    draft = ("send-keys", "-t", f"={cli.agent('fox')['id']}:agent", "-l", "!touch drafted")
    cli.tmux(*draft)
    claude.until("fox", lambda: "touch drafted" in cli("capture", "fox").out, "the draft is there")
    assert outcome(claude, "fox", "busy: for a while") == "delivered:"
    server.until_held("busy")
    assert outcome(claude, "fox", "one: after\nthe other").startswith("queued: the agent is busy")
    assert outcome(claude, "fox", "two: ends in a backslash \\").startswith("queued")
    assert claude.state("fox")[0] == "RUNNING"
    assert not (cli.work_dir("fox") / "drafted").exists()
    server.release("busy")
    talk = claude.answered("fox", "two:")
    assert talk.prompts[1:] == [
        "busy: for a while",
        "one: after\nthe other",
        "two: ends in a backslash \\",
    ]

    # commands: the project's own, one there is not, and a new conversation
    assert outcome(claude, "fox", "/mine this") == "delivered:"
    assert "mine: do this" in claude.answered("fox", "mine:").prompts[-1]
    assert outcome(claude, "fox", "/nosuch thing") == "failed: Unknown command: /nosuch"
    assert outcome(claude, "fox", "/clear") == "delivered:"
    claude.say("fox", "anew: who are you").ok()
    begun = ["anew: who are you"]
    assert said_to(claude, "anew:") == begun

    # that one is resumed
    cli("restart", "fox", timeout=PATIENCE).ok()
    claude.say("fox", "last: and now").ok()
    assert said_to(claude, "last:") == [*begun, "last: and now"]
    # and continues in a clone, also in one that is stopped before its first message
    cli("clone", "fox", "cub", timeout=PATIENCE).ok()
    cli("restart", "cub", timeout=PATIENCE).ok()
    claude.say("cub", "other: and you").ok()
    assert said_to(claude, "other:", "cub") == [*begun, "last: and now", "other: and you"]
    told = [each["text"] for each in claude.transcript("fox") if each["type"] == "user_message"]
    assert [each.split(":")[0] for each in told] == [
        *("doctor", "busy", "one", "two", "/mine this", "/clear", "anew", "last")
    ]


def test_a_message_that_a_stop_loses_is_named(claude: Stage) -> None:
    server, cli = claude.server, claude.cli
    server.on("busy:", say="Wait.", hold="busy", run="true")
    server.on("again:", say="Wait.", hold="again", run="true")
    claude.create("fox", "busy: for a while")
    server.until_held("busy")
    assert outcome(claude, "fox", "one: after\nthe other").startswith("queued")
    lost = "mngr: fox: 1 queued message had not been read and will not be delivered"
    assert cli("stop", "fox").ok().err == f"{lost}: one: after the other\n"
    assert cli("start", "fox", timeout=PATIENCE).ok().err == ""
    claude.say("fox", "again: busy").ok()
    server.until_held("again")
    assert outcome(claude, "fox", "two: more").startswith("queued")
    assert cli("restart", "fox", timeout=PATIENCE).ok().err == f"{lost}: two: more\n"


def test_a_conversation_that_never_began_begins_with_its_prompt_at_the_next_start(
    claude: Stage, tmp_path: Path
) -> None:
    server, cli = claude.server, claude.cli
    server.on("first:", say="At last.")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "claude").write_text("#!/bin/sh\nexit 3\n")
    (broken / "claude").chmod(0o700)
    whole = cli.env["PATH"]
    cli.env["PATH"] = f"{broken}:{whole}"
    claude.create("fox", "first: 'quoted'\nand two lines long")
    claude.reaches("fox", "FAILED", "exit code 3")
    (broken / "claude").unlink()

    cli("start", "fox", timeout=PATIENCE).ok()
    talk = claude.answered("fox", "first:")
    assert talk.prompts == ["first: 'quoted'\nand two lines long"]


def test_without_a_terminal_it_prints_its_answer_and_ends(claude: Stage) -> None:
    server, cli = claude.server, claude.cli
    server.on("print:", say="On it.", run="echo made > made").then(say="This is all.")
    server.on("fail:", fail=400, text="not like this")
    words = ("--foreground", "--message")
    free = ("--", "--permission-mode", "default", "--allowedTools", "Bash")
    done = cli("create", "fox", "claude", *words, "print: something", *free, timeout=PATIENCE)
    assert done.ok().out == "This is all.\n"
    assert claude.state("fox")[0] == "DONE"
    assert (cli.work_dir("fox") / "made").read_text() == "made\n"
    served = server.conversation("print:").usage
    [row] = cli("usage", "fox", "--format", "json").ok().json()["usage"]
    assert (row["input"], row["output"]) == (served.input, served.output)

    failed = cli("create", "cub", "claude", *words, "fail: please", *free, timeout=PATIENCE)
    assert failed.code == 1 and "not like this" in failed.out + failed.err
    assert claude.state("cub")[0] == "FAILED"


def test_it_uses_the_users_login_and_settings_and_leaves_them_alone(
    local: Cli, tmp_path: Path
) -> None:
    """Also where the work directory is reached by a link: the program trusts only real paths."""
    real_home = tmp_path / "real"
    real_home.mkdir()
    local.controller_home.symlink_to(real_home)
    with stage(local, "claude") as claude:
        del local.env["ANTHROPIC_API_KEY"]
        mine = local.user_home / ".claude"
        before = user_settings(mine)
        claude.server.on("hello:", say="Hello.")
        claude.create("fox", "hello: you")
        talk = claude.answered("fox", "hello:")
        assert talk.turns[0].key == "sk-ant-oat01-of-the-user"
        body = json.dumps(talk.turns[0].body)
        assert "Always say please." in body and "claude-sonnet-4-5" in body
        # The user's own hook, once; and none of ours in the user's folder.
        assert (mine / "stops").read_text() == "stop\n"
        (mine / "stops").unlink()
        assert {path: path.read_bytes() for path in before} == before
        assert sorted(path for path in mine.rglob("*") if path.is_file()) == sorted(before)
        folder = local.state_dir("fox") / "claude"
        assert not (folder / ".credentials.json").exists()
        for private in (".claude.json", "settings.json"):
            assert stat.S_IMODE((folder / private).stat().st_mode) == 0o600


def user_settings(folder: Path) -> dict[Path, bytes]:
    """A login, instructions, a model and a hook, as a user may have them."""
    folder.mkdir()
    login = {
        "accessToken": "sk-ant-oat01-of-the-user",
        "refreshToken": "sk-ant-ort01-of-the-user",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
    hook = {"hooks": [{"type": "command", "command": f"echo stop >> {folder}/stops"}]}
    settings = {"model": "claude-sonnet-4-5", "hooks": {"Stop": [hook]}}
    (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
    (folder / ".credentials.json").chmod(0o600)
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "CLAUDE.md").write_text("Always say please.\n")
    return {path: path.read_bytes() for path in folder.iterdir()}


def test_its_states_are_told_on_a_host_that_has_only_a_shell(tmp_path: Path) -> None:
    cli = Cli(tmp_path, provider="bare")
    try:
        with stage(cli, "claude") as claude:
            claude.server.on("ask:", say="May I?", run="touch asked").then(say="Thanks.")
            claude.create("fox", "ask: for something", "--permission-mode", "default")
            claude.reaches("fox", "WAITING", "permission", about="Bash: touch asked")
            cli("answer", "fox", "--allow", timeout=PATIENCE).ok()
            claude.answered("fox", "ask:")
            assert (cli.work_dir("fox") / "asked").exists()
    finally:
        cli.close()
