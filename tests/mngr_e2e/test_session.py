"""What a test can do with its session."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from mngr_e2e import E2eSession
from mngr_e2e.commands.background import OutputMissing


def test_each_test_has_its_own_home_and_work_directory(e2e: E2eSession) -> None:
    result = e2e.run("pwd; echo $HOME; touch mine; ls -A ~")
    assert result.stdout == f"{e2e.work}\n{e2e.home}\n"
    assert (e2e.work / "mine").exists()


def test_commands_do_not_see_the_environment_of_pytest(
    e2e: E2eSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAY", "1")
    assert "STRAY" not in e2e.run("env").stdout


def test_variables_are_for_one_command_or_for_all_that_follow(e2e: E2eSession) -> None:
    assert e2e.run("echo $A", env={"A": "once"}).stdout == "once\n"
    assert e2e.run("echo $A").stdout == "\n"
    e2e.env["A"] = "always"
    assert e2e.run("echo $A").stdout == "always\n"


def test_a_command_runs_in_the_directory_it_is_given(e2e: E2eSession, tmp_path: Path) -> None:
    (e2e.work / "sub").mkdir()
    assert e2e.run("pwd", cwd="sub").stdout == f"{e2e.work}/sub\n"
    assert e2e.run("pwd", cwd=tmp_path).stdout == f"{tmp_path}\n"


def test_text_and_bytes_can_be_given_as_input(e2e: E2eSession) -> None:
    assert e2e.run("cat", stdin="grüße").stdout == "grüße"
    assert e2e.run("cat", stdin=b"\xff\x00").stdout_bytes == b"\xff\x00"


def test_undecodable_output_keeps_every_byte(e2e: E2eSession) -> None:
    result = e2e.run(r"printf 'a\377b'")
    assert result.stdout.encode("utf-8", "surrogateescape") == result.stdout_bytes == b"a\xffb"


def test_a_timeout_is_said_in_the_result_and_in_the_transcript(e2e: E2eSession) -> None:
    limit = 0.3  # a busy machine may need more to say the first word
    while not (result := e2e.run("echo before; sleep 100", timeout=limit)).stdout and limit < 30:
        limit *= 10
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 124, "before\n")
    assert limit < result.seconds < limit + 20
    assert result.transcript.endswith(f"before\n? 124 timed out after {limit:g} s\n")


def test_the_transcript_shows_commands_of_several_lines_and_half_lines(e2e: E2eSession) -> None:
    result = e2e.run("for i in 1 2; do\nprintf $i\ndone", comment="two\nlines")
    assert result.transcript == "# two\n# lines\n$ for i in 1 2; do\n> printf $i\n> done\n12\n"
    assert (e2e.artifacts / "transcript.txt").read_text() == result.transcript


def test_the_transcript_of_endless_output_is_cut_and_says_so(e2e: E2eSession) -> None:
    result = e2e.run("yes | head -c 20000000")
    assert len(result.stdout_bytes) == 20_000_000
    assert len(result.transcript) < 4_000_000
    assert re.search(r"# \d+ more bytes are not shown\n$", result.transcript)


def test_a_background_command_is_awaited_by_what_it_says(e2e: E2eSession) -> None:
    e2e.run("mkfifo gate")
    server = e2e.start("echo starting; read line < gate; echo got $line; exec sleep 100")
    server.wait_for_output("starting")
    e2e.run("echo word > gate")
    assert server.wait_for_output("got word") == "starting\ngot word\n"
    assert server.running


def test_stop_ends_a_background_command_and_gives_its_exit_code(e2e: E2eSession) -> None:
    server = e2e.start("trap 'echo bye >&2; exit 5' TERM; echo up; while :; do sleep 0.02; done")
    assert server.wait_for_output(re.compile("^up$", re.MULTILINE)) == "up\n"
    assert server.stop(grace=30) == 5
    assert server.stderr.endswith("bye\n")
    assert not server.running
    assert "! bye\n? 5 from trap" in e2e.transcript.text
    assert json.loads((e2e.artifacts / "result.json").read_text())["commands"][0]["exit_code"] == 5


def test_what_was_not_said_fails_with_what_was(e2e: E2eSession) -> None:
    server = e2e.start("echo something else; sleep 100")
    server.wait_for_output("else")
    with pytest.raises(OutputMissing, match=r"'ready' within 0\.1 s; it printed:\nsomething"):
        server.wait_for_output("ready", timeout=0.1)


def test_a_command_that_ended_is_not_awaited(e2e: E2eSession) -> None:
    began = time.monotonic()
    with pytest.raises(OutputMissing, match="before it ended"):
        e2e.start("echo no").wait_for_output("ready", timeout=100)
    assert time.monotonic() - began < 60


def test_a_background_command_can_be_typed_to(e2e: E2eSession) -> None:
    asks = e2e.start("read name; echo hello $name", pty=True)
    asks.type("you\r")
    asks.wait_for_output("hello you")
    assert asks.wait() == 0
