"""The conversation with an agent, in every format, past and coming."""

from __future__ import annotations

import json
from typing import Any

from tests.support.cli import Cli, first_line, until
from tests.support.scribe import scribe


def records(cli: Cli, *args: str) -> list[dict[str, Any]]:
    lines = cli("transcript", "foo", "--format", "jsonl", *args).ok().out.splitlines()
    return [json.loads(line) for line in lines]


def test_a_conversation_reads_the_same_in_every_format(mngr: Cli) -> None:
    scribe(mngr, "foo", "-m", "hello there")
    mngr("message", "foo", "-m", "ask to leave").ok()
    until(lambda: mngr.agent("foo")["state_reason"] == "permission: to leave", timeout=30)
    mngr("answer", "foo", "yes").ok()
    until(lambda: len(records(mngr)) == 5, timeout=30)
    found = records(mngr)
    assert [each["type"] for each in found] == [
        "user_message",
        "assistant_message",
        "user_message",
        "tool_result",
        "assistant_message",
    ]
    assert [each["text"] for each in found[:2]] == ["hello there", "You said: hello there"]
    assert all({"event_id", "timestamp", "source", "type"} <= each.keys() for each in found)
    assert len({each["event_id"] for each in found}) == 5
    assert found[-1]["tools"] == [{"id": "t1", "name": "Look", "input": {"at": "to leave"}}]
    assert (found[-1]["model"], found[-1]["source"]) == ("claude-sonnet-4-5", "scribe")
    assert mngr("transcript", "foo", "--format", "json").ok().json()["transcript"] == found
    assert records(mngr, "--role", "user") == [found[0], found[2]]
    assert records(mngr, "--role", "user", "--role", "tool", "--tail", "1") == [found[3]]
    assert records(mngr, "--head", "2") == found[:2]
    assert records(mngr, "--tail", "0") == []
    assert mngr("transcript", "foo", "--format", "{type}", "--head", "1").out == "user_message\n"
    human = mngr("transcript", "foo").ok().out
    assert human.startswith("# user, 20")
    assert '\nYou said: ask to leave\n> Look {"at": "to leave"}\n' in human


def test_following_shows_each_entry_once_and_ends_with_the_agent(local: Cli) -> None:
    scribe(local, "foo", "-m", "one")
    following = local.start("transcript", "foo", "--follow", "--format", "{text}", "--tail", "1")
    assert first_line(following, 30) == b"You said: one\n"
    local("message", "foo", "-m", "two", "--wait").ok()
    assert first_line(following, 30) == b"two\n"
    assert first_line(following, 30) == b"You said: two\n"
    local("stop", "foo").ok()
    out, err = following.communicate(timeout=30)
    assert (out, err, following.returncode) == (b"", b"", 0)


def test_long_results_of_tools_are_cut_for_people(local: Cli) -> None:
    scribe(local, "foo")
    told = "\n".join(f"line {n}" for n in range(30))
    entry = {"role": "tool", "text": told + "\x1b[31m", "time": "2026-01-02T03:04:05Z"}
    folder = local.state_dir("foo") / "talk"
    (folder / "talk.jsonl").write_text(json.dumps(entry) + "\n")
    short = local("transcript", "foo", env={"TZ": "UTC"}).ok().out
    assert short.startswith("# tool, 2026-01-02 03:04:05 +0000\nline 0\n")
    assert short.endswith("line 9\n… and 20 more lines\n\n")
    whole = local("transcript", "foo", "-v").ok().out
    assert whole.endswith("line 29\n\n")
    assert "\x1b" not in short + whole


def test_what_has_no_conversation_says_so(local: Cli) -> None:
    local.create("plain", "--transfer", "none")
    local("transcript", "plain").fails(1, "has no transcript", "mngr capture plain")
    local("transcript", "plain", "--role", "users").fails(2, "'users'", "'user'")
    local("transcript", "plain", "--tail", "x").fails(2, "--tail")
    local("transcript", "plain", "--head", "1", "--follow").fails(2, "--head")
    local("transcript", "plan").fails(4, "no agent 'plan'", "'plain'")
    local("transcript").fails(2, "no agent given")
