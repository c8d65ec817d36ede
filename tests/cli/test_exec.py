from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import Cli, first_line, until
from tests.support.screen import Screen


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_one_agent_gives_the_commands_own_bytes_and_exit_code(mngr: Cli) -> None:
    mngr.create("foo", "--env", "GREETING=a  b")
    work = mngr.work_dir("foo")
    script = 'printf "%s\\377" "$GREETING"; printf "err\\376" >&2; exit 7'
    for flags in ([], ["--stream"]):
        done = mngr("exec", *flags, "foo", script, env={"AWS_SECRET": "x"})
        assert done.code == 7
        assert os.fsencode(done.out) == b"a  b\xff"
        assert os.fsencode(done.err) == b"err\xfe"
    assert mngr("exec", "foo", "pwd").ok().out == f"{work}\n"
    assert "AWS_SECRET" not in mngr("exec", "foo", "env", env={"AWS_SECRET": "x"}).ok().out
    (work / "sub dir").mkdir()
    assert mngr("exec", "foo", "--cwd", "sub dir", "pwd").ok().out == f"{work}/sub dir\n"
    assert mngr("exec", "foo", "cat", input="not for it").ok().out == ""
    words = ["$(id)", "a;b", "--", "it's", "", "🪁\n"]
    argv = mngr("exec", "foo", "--", "printf", "%s|", *words).ok()
    assert argv.out == "".join(f"{word}|" for word in words)
    big = mngr("exec", "foo", "head -c 5000000 /dev/zero").ok()
    assert big.out == "\0" * 5_000_000
    assert mngr("exec", "foo", "--", "no-such-program").code == 127
    gone = f"there is no directory {mngr.work_dir('foo')}/nowhere"
    mngr("exec", "foo", "--cwd", "nowhere", "true").fails(1, gone)
    assert mngr.state("foo") == "RUNNING"


def test_several_agents_are_told_apart(mngr: Cli) -> None:
    mngr.create("one", "--env", "N=1")
    mngr.create("two", "--env", "N=2")
    for flags in ([], ["--stream"]):
        both = mngr("exec", *flags, "one", "two", "echo a$N; printf b$N; echo err >&2").ok()
        assert sorted(both.out.splitlines()) == ["one: a1", "one: b1", "two: a2", "two: b2"]
        assert sorted(both.err.splitlines()) == ["one: err", "two: err"]
    some = mngr("exec", "one", "two", "--format", "json", "echo $N; exit $((N - 1))")
    assert some.code == 3
    result = {"agent": "one", "exit_code": 0, "stdout": "1\n", "stderr": "", "success": True}
    failed = {"agent": "two", "exit_code": 1, "stdout": "2\n", "stderr": "", "success": False}
    assert some.json() == {
        "results": [result, failed],
        "failed_agents": ["two"],
        "total_executed": 2,
        "total_failed": 1,
    }
    both = mngr("exec", "one", "two", "exit 5")
    assert (both.code, both.err) == (1, "mngr: one: exit code 5\nmngr: two: exit code 5\n")
    alone = mngr("exec", "one", "--format", "json", "exit 5")
    assert (alone.code, alone.json()["results"][0]["exit_code"]) == (1, 5)
    assert mngr("exec", "one", "two", "--on-error", "abort", "touch mark; exit 1").code == 1
    assert (mngr.work_dir("one") / "mark").exists()
    assert not (mngr.work_dir("two") / "mark").exists()
    missing = mngr("exec", "one", "three", "echo $N").fails(4, "no agent 'three'")
    assert "mngr exec one -- three 'echo $N'" in missing.err, "nothing runs: a quote may be missing"
    listed = mngr("exec", "-", "echo $N", input="one\nthree\n")
    assert (listed.code, listed.out) == (3, "one: 1\n") and "no agent 'three'" in listed.err
    piped = mngr("exec", "-", "echo $N", input="one\ntwo\n").ok()
    assert piped.out == "one: 1\ntwo: 2\n"


def test_a_timeout_ends_everything_the_command_started(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    script = "echo begun; setsid sh -c 'echo $$ > stray; exec sleep 1000' & sleep 1000 & wait"
    late = mngr("exec", "foo", "--timeout", "500ms", script)
    late.fails(124, "did not finish within 0.5 s")
    assert late.out == "begun\n"
    stray = pid_in(work / "stray")
    until(lambda: gone(stray), what="the end of what had left its session")
    mngr.create("bar")
    both = mngr("exec", "foo", "bar", "--timeout", "300ms", "echo x; sleep 1000")
    assert both.code == 1
    assert both.out == "foo: x\nbar: x\n"
    assert both.err.count("did not finish") == 2
    assert mngr.state("foo") == "RUNNING"


@pytest.mark.parametrize("words", [("foo",), ("foo", "bar", "--stream")])
def test_output_comes_as_it_is_written_and_ctrl_c_ends_the_command(
    mngr: Cli, words: tuple[str, ...]
) -> None:
    mngr.create("foo")
    if "bar" in words:
        mngr.create("bar")
    script = "echo first; echo $$ > pid; exec sleep 1000"
    running = mngr.start("exec", *words, script)
    assert first_line(running).endswith(b"first\n")
    pid = pid_in(mngr.work_dir("foo") / "pid")
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130
    running.communicate()
    until(lambda: gone(pid))


def test_a_stopped_agent_can_be_looked_into_and_started_on_request(local: Cli) -> None:
    local.create("foo")
    local("stop", "foo").ok()
    assert local("exec", "foo", "cat README").ok().out == "hello\n"
    assert local.state("foo") == "STOPPED"
    local("exec", "foo", "--start", "true").ok()
    assert local.state("foo") == "RUNNING"


def test_wrong_use_is_named(local: Cli) -> None:
    local.create("foo")
    local("exec", "foo").fails(2, "missing COMMAND")
    local("exec").fails(2, "no agent given")
    local("exec", "foo", " ").fails(2, "the command is empty")
    local("exec", "fo", "true").fails(4, "no agent 'fo'", "'foo'")
    local("exec", "foo:x", "true").fails(2, "names a path")
    local("exec", "foo", "--timeout", "x", "true").fails(2, "bad duration")
    local("exec", "foo", "--timout", "1", "true").fails(2, "'--timout'", "'--timeout'")
    said = local("exec", "foo", "--dry-run", "touch mark").ok()
    assert "foo: would run sh -c 'touch mark'" in said.out
    assert not (local.work_dir("foo") / "mark").exists()


def test_standard_input_reaches_the_command_when_asked_for(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "none", "--", "true")
    data = bytes(range(256)) * 300
    done = mngr("exec", "-i", "foo", "cksum; exit 7", input=data)
    assert (done.code, done.out.split()[1]) == (7, str(len(data)))
    assert mngr("exec", "foo", "cat", input="ignored").ok().out == ""
    mngr("exec", "-t", "foo", "true").fails(2, "-t requires a terminal")
    mngr("exec", "-i", "foo", "true", "--timeout", "3s").fails(2, "--timeout")
    mngr("exec", "-i", "-", "true", input="foo\n").fails(2, "-i")


def test_a_command_can_have_the_terminal(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "none", "--", "true")
    with Screen(mngr) as screen:
        screen.mngr("exec", "-it", "foo", "tty && read line && echo in $MNGR_AGENT_NAME: $line")
        screen.shows("/dev/")
        screen.type("hello")
        screen.shows("in foo: hello")


def test_a_dry_run_for_several_agents_is_one_document(local: Cli) -> None:
    local.create("foo", "--transfer", "none")
    local.create("bar", "--transfer", "none")
    told = local("exec", "foo", "bar", "true", "--dry-run", "--format", "json").ok().json()
    assert [each["name"] for each in told["agents"]] == ["foo", "bar"] and told["errors"] == []


def test_output_that_cannot_be_written_is_one_line(local: Cli) -> None:
    local.create("foo")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            local.argv("exec", "foo", "seq 100000"),
            env=local.environment(),
            cwd=local.repo,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.stderr == b"mngr: standard output: No space left on device\n"
    assert done.returncode == 1
