"""The state that `list` shows, against what was really done to the agent."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.support.cli import Cli, lives, until
from tests.support.places import ended

NONE = ("--transfer", "none")


def kill_server(mngr: Cli) -> None:
    pid = int(mngr.tmux("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not os.path.exists(f"/proc/{pid}") or "Z" in _stat(pid))


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def reason(mngr: Cli, name: str) -> tuple[str, str]:
    agent = mngr.agent(name)
    return agent["state"], agent["state_reason"]


def test_how_it_ended_is_how_it_is_listed(mngr: Cli) -> None:
    mngr.create("good", *NONE, "--", "true")
    mngr.create("bad", *NONE, "--", "sh", "-c", "exit 3")
    mngr.create("shot", *NONE, "--", "sh", "-c", "kill -SEGV $$")
    mngr.create("late", *NONE, "--timeout", "1", "--", "sleep", "1000")
    mngr.create("live", *NONE)
    mngr("wait", "good", "bad", "shot", "late", "--timeout", "30").fails(1, "3 of 4 failed")
    assert reason(mngr, "good") == ("DONE", "exit code 0")
    assert reason(mngr, "bad") == ("FAILED", "exit code 3")
    assert reason(mngr, "shot") == ("FAILED", "signal SIGSEGV")
    assert reason(mngr, "late") == ("FAILED", "timed out after 1 s")
    assert reason(mngr, "live") == ("RUNNING", "process is alive")
    assert mngr.agent("bad")["exit_code"] == 3
    assert mngr.agent("bad")["pid"] is None


def test_a_killed_launcher_did_not_report(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    os.kill(mngr.agent("foo")["pid"], signal.SIGKILL)
    mngr("wait", "foo", "FAILED", "--timeout", "20").ok()
    assert reason(mngr, "foo") == ("FAILED", "killed before it could report")
    mngr("start", "foo").ok()
    assert mngr.state("foo") == "RUNNING"


def test_a_killed_server_loses_agents_and_start_brings_one_copy_back(mngr: Cli) -> None:
    script = "trap '' HUP; echo $$ >> pids; while :; do sleep 1000; done"
    mngr.create("foo", "--", "sh", "-c", script)
    pids = mngr.work_dir("foo") / "pids"
    until(lambda: pids.exists() and pids.read_text().strip())
    kill_server(mngr)
    until(lambda: mngr.state("foo") == "LOST")
    assert lives(pids.read_text().split()[0]), "it outlived its terminal"
    mngr("start", "foo").ok()
    until(lambda: len(pids.read_text().split()) == 2)
    first, second = pids.read_text().split()
    assert mngr.state("foo") == "RUNNING"
    assert lives(second)
    assert not lives(first)


def test_files_the_agent_writes_about_itself_cannot_break_the_list(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    folder = mngr.state_dir("foo")
    (folder / "signals").mkdir(exist_ok=True)
    (folder / "signals" / "Stop.json").write_text("{")
    (folder / "exit").write_text('{"launch": "another", "code": 0, "time": 1}')
    assert mngr.state("foo") == "RUNNING"
    (folder / "exit").write_text("nonsense")
    assert mngr.state("foo") == "RUNNING"


def test_a_forged_exit_beside_a_live_process_makes_it_neither_done_nor_unstoppable(
    mngr: Cli,
) -> None:
    mngr.create("foo", *NONE)
    folder, pid = mngr.state_dir("foo"), mngr.agent("foo")["pid"]
    launch = json.loads((folder / "started").read_text())["launch"]
    for time in (1, 1e300):
        (folder / "exit").write_text(json.dumps({"launch": launch, "code": 0, "time": time}))
        assert reason(mngr, "foo") == ("RUNNING", "process is alive")
    (folder / "started").write_text(json.dumps({"launch": launch, "pid": 1, "time": 1.0}))
    assert reason(mngr, "foo") == ("RUNNING", "process is alive")
    assert mngr("stop", "foo").ok().out == "Stopped foo.\n"
    assert not lives(pid)


def test_what_tmux_saw_counts_more_than_what_the_agent_wrote(mngr: Cli) -> None:
    script = 'echo $PPID; mkdir "$MNGR_AGENT_STATE_DIR/exit"; exit 3'
    mngr.create("foo", *NONE, "--", "sh", "-c", script)
    mngr("wait", "foo", "--timeout", "30").fails(1, "foo is FAILED")
    agent = mngr.agent("foo")
    assert (agent["state"], agent["exit_code"]) == ("FAILED", 3)
    assert agent["state_reason"].startswith("exit code 3; its launcher could not record this")


@pytest.mark.soak
def test_a_program_that_ends_at_once_is_never_called_killed(tmp_path: Path) -> None:
    """tmux 3.3a loses about one SIGCHLD in fifty, and then does not know how a program ended."""
    for number in range(150):
        cli = Cli(tmp_path / str(number))
        cli.create("foo", *NONE, "--", "sh", "-c", 'mkdir "$MNGR_AGENT_STATE_DIR/exit"; exit 3')
        cli("wait", "foo", "--timeout", "30").fails(1, "foo is FAILED")
        assert cli.agent("foo")["exit_code"] == 3
        ended(cli)


@pytest.mark.parametrize("stop", ["tmux", "everything"])
def test_a_finished_agent_stays_finished_when_its_session_goes(local: Cli, stop: str) -> None:
    local.create("foo", *NONE, "--", "sh", "-c", "exit 4")
    local("wait", "foo", "FAILED").ok()
    if stop == "tmux":
        kill_server(local)
    else:
        local.close()
    assert reason(local, "foo") == ("FAILED", "exit code 4")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_strangers_socket_is_not_believed(local: Cli) -> None:
    local.create("foo", *NONE)
    os.chown(local.socket, 65534, -1)
    try:
        agent = local.agent("foo")
        assert (agent["state"], "belongs to another user" in agent["state_reason"]) == (
            "UNREACHABLE",
            True,
        )
    finally:
        os.chown(local.socket, os.getuid(), -1)
    assert local.state("foo") == "RUNNING"


def wrapped(cli: Cli, program: str, script: str) -> str:
    """A PATH on which the real program stands behind a script that calls it by $real."""
    real, folder = shutil.which(program), cli.base / "wrapped"
    folder.mkdir()
    place = folder / program
    place.write_text(f"#!/bin/sh\nreal={real}\n{script}")
    place.chmod(0o755)
    return f"{folder}:{cli.env['PATH']}"


def test_that_it_was_created_is_told_before_that_it_ended(mngr: Cli) -> None:
    """Also where the program has ended before tmux has told who launches that it began."""
    wait = f'until [ -n "$(find {mngr.home}/agents -name exit)" ]; do sleep 0.02; done'
    slow = f'"$real" "$@" || exit; case "$*" in *new-session*) {wait} ;; esac\n'
    path = wrapped(mngr, "tmux", slow)
    mngr("create", "foo", "--no-connect", "--", "true", env={"PATH": path}).ok()
    told = mngr("event", "foo", "--format", "{type}").ok().out.split()
    assert told == ["agent_created", "agent_exited"]


def test_a_launcher_whose_child_is_killed_reports_all_the_same(mngr: Cli) -> None:
    """Whoever ends an agent's processes may meet its launcher's as well."""
    once = f"{mngr.base}/killed"
    killed = f'case "$*" in */exit) [ -e {once} ] || {{ : > {once}; kill -TERM $$; }} ;; esac\n'
    path = wrapped(mngr, "mv", killed + 'exec "$real" "$@"\n')
    mngr("create", "foo", "--no-connect", "--env", f"PATH={path}", "--", "sh", "-c", "exit 3").ok()
    mngr("wait", "foo", "FAILED", "--timeout", "30").ok()
    assert Path(once).exists()
    assert mngr.agent("foo")["state_reason"] == "exit code 3"


def test_no_name_of_a_window_hides_other_agents(mngr: Cli) -> None:
    mngr.create("foo", "-w", "more--=sleep 1000")
    mngr.create("bar")
    mngr.tmux("rename-window", "-t", f"={mngr.record('foo')['id']}:agent", "--")
    assert {mngr.state(name) for name in ("foo", "bar")} == {"RUNNING"}
