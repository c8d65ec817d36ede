"""The scripted model, by hand and with the real programs."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from tests.support.cli import Cli
from tests.support.model import ModelServer, Usage
from tests.support.programs import path_with
from tests.support.real import spare_the_plugins


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def ask(server: ModelServer, *said: str, session: str = "one", **more: Any) -> Any:
    """A request as a client makes it: prompts and answers in turn."""
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": text}
        for number, text in enumerate(said)
    ]
    body = {"model": "m", "messages": messages, "tools": [{"name": "Bash"}]} | more
    request = Request(
        f"{server.url}/v1/messages",
        json.dumps(body).encode(),
        {"x-api-key": "key", "x-session-id": session, "content-type": "application/json"},
    )
    with urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    return text if more.get("stream") else json.loads(text)


def said(answer: Any) -> str:
    return "".join(block.get("text", "") for block in answer["content"])


def test_the_first_rule_that_matches_answers_step_by_step(server: ModelServer) -> None:
    server.on("one.two", say="a", run="ls").then(say="b")
    server.on("one", say="c")
    first = ask(server, "one\ntwo")
    assert said(first) == "a" and first["stop_reason"] == "tool_use"
    assert first["content"][1]["name"] == "Bash"
    assert first["content"][1]["input"]["command"] == "ls"
    assert said(ask(server, "one\ntwo", "a", "<system-reminder>result</system-reminder>")) == "b"
    assert said(ask(server, "one\ntwo", "a", "one")) == "c"
    assert said(ask(server, "four")).startswith("No rule matches: four")


def test_failures_come_as_often_as_told_and_per_conversation(server: ModelServer) -> None:
    server.on("x", fail=429, retry_after=7, times=2).then(say="fine")
    for session in ("one", "two"):
        for _ in range(2):
            with pytest.raises(HTTPError) as error:
                ask(server, "x", session=session)
            assert error.value.code == 429 and error.value.headers["retry-after"] == "7"
            error.value.close()
        assert said(ask(server, "x", session=session)) == "fine"
    assert [len(each.asked) for each in server.conversations.values()] == [3, 3]
    assert [len(each.turns) for each in server.conversations.values()] == [1, 1]


def test_a_used_up_quota_says_when_it_ends(server: ModelServer) -> None:
    server.on("x", quota=1_900_000_000)
    for _ in range(3):
        with pytest.raises(HTTPError) as error:
            ask(server, "x")
        assert error.value.headers["anthropic-ratelimit-unified-reset"] == "1900000000"
        error.value.close()


def test_a_broken_stream_ends_in_its_middle_once(server: ModelServer) -> None:
    server.on("x", say="will not be whole", broken=True).then(say="whole")
    with pytest.raises(http.client.IncompleteRead) as error:
        ask(server, "x", stream=True)
    assert b"message_start" in error.value.partial and b"message_stop" not in error.value.partial
    text = ask(server, "x", stream=True)
    assert "event: message_stop" in text and "".join(deltas(text)) == "whole"
    assert server.usage == server.conversations["one"].turns[0].usage != Usage()


def deltas(stream: str) -> list[str]:
    data = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    return [each["delta"]["text"] for each in data if each["type"] == "content_block_delta"]


def test_a_held_answer_waits_and_others_do_not(server: ModelServer) -> None:
    server.on("x", say="late", hold="gate")
    server.on("y", say="now")
    code = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], b'{}').read())"
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "t"}]})
    waiting = subprocess.Popen(
        ["python3", "-c", code.replace("b'{}'", repr(body.encode())), f"{server.url}/v1/messages"],
        stdout=subprocess.PIPE,
    )
    server.until_held("gate")
    assert said(ask(server, "y")) == "now"
    assert [request.status for request in server.requests] == [0, 200]
    server.release("gate")
    assert b"late" in waiting.communicate(timeout=60)[0]


def test_requests_without_tools_are_not_the_conversation(server: ModelServer) -> None:
    server.on("x", say="no")
    assert said(ask(server, "x", tools=[])) == "Scripted"
    assert server.conversations == {} and server.usage == Usage()
    assert server.requests[0].background and server.requests[0].key == "key"


def test_a_server_that_is_gone_refuses_and_comes_back(server: ModelServer) -> None:
    server.on("x", say="here")
    assert said(ask(server, "x")) == "here"
    server.vanish()
    with pytest.raises((URLError, ConnectionError)):
        ask(server, "x")
    server.return_()
    assert said(ask(server, "x")) == "here"


# The real programs edit a file, run a command and commit, as the script defines.

COMMIT = "cat poem >> seen && git add -A && git commit -qm 'a poem'"


def work(cli: Cli, server: ModelServer, program: str, *argv: str) -> str:
    """Run a program in the repository; what it printed."""
    env = cli.env | server.environment(program) | {"PATH": path_with(program), "IS_SANDBOX": "1"}
    done = subprocess.run(
        argv,
        cwd=cli.repo,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert cli.git("log", "-1", "--format=%s") == "a poem"
    assert cli.git("show", "HEAD:seen") == "roses are red"
    assert cli.git("status", "--porcelain") == ""
    assert len(server.conversation("write a poem").turns) >= 2
    return done.stdout


def test_the_real_claude_does_what_the_script_says(local: Cli, server: ModelServer) -> None:
    poem = {"file_path": str(local.repo / "poem"), "content": "roses are red\n"}
    server.on("write a poem", say="Writing.", call=("Write", poem)).then(
        call=("Bash", {"command": COMMIT})
    ).then(say="Written.")
    argv = ("claude", "-p", "write a poem", "--output-format", "json")
    out = json.loads(work(local, server, *argv[:1], *argv, "--permission-mode=bypassPermissions"))
    assert out["result"] == "Written."
    told, served = out["usage"], server.conversation("write a poem").usage
    assert (told["input_tokens"], told["output_tokens"]) == (served.input, served.output)
    assert told["cache_read_input_tokens"] == served.cache_read


def test_the_real_codex_does_what_the_script_says(local: Cli, server: ModelServer) -> None:
    home = Path(local.env["HOME"], ".codex")
    home.mkdir()
    (home / "config.toml").write_text(server.codex_config())
    server.on("write a poem", say="Writing.", run="echo roses are red > poem").then(
        run=COMMIT
    ).then(say="Written.")
    argv = ("codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "write a poem")
    events = [json.loads(line) for line in work(local, server, *argv[:1], *argv).splitlines()]
    assert events[-2]["item"]["text"] == "Written."
    told, served = events[-1]["usage"], server.conversation("write a poem").usage
    assert told["output_tokens"] == served.output
    assert told["cached_input_tokens"] == served.cache_read


@pytest.mark.soak
def test_the_real_opencode_does_what_the_script_says(local: Cli, server: ModelServer) -> None:
    spare_the_plugins(local.user_home / ".config" / "opencode")
    poem = {"filePath": str(local.repo / "poem"), "content": "roses are red\n"}
    server.on("write a poem", say="Writing.", call=("write", poem)).then(
        call=("bash", {"command": COMMIT, "description": "commit"})
    ).then(say="Written.")
    out = work(local, server, "opencode", "opencode", "run", "write a poem")
    assert "Written." in out
