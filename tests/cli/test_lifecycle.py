"""start, stop, restart, archive, rename, label: idempotent and atomic, with correct reports."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from mngr.hosts.tmux_scripts import mark
from tests.support.cli import Cli, lives, until
from tests.support.folders import on_folders

NONE = ("--transfer", "none")


def launches(mngr: Cli, name: str) -> int:
    [record] = mngr.state_dir(name).glob("agent.*.json")
    return int(json.loads(record.read_text())["launches"])


def records(mngr: Cli, name: str) -> list[str]:
    return sorted(path.name for path in mngr.state_dir(name).glob("agent.*.json"))


def test_stop_and_start_do_what_they_say_and_say_what_is(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    mngr.create("bar", *NONE)
    pid = mngr.agent("foo")["pid"]
    assert mngr("stop", "foo", "--dry-run").ok().out == "Would stop foo (RUNNING).\n"
    assert lives(pid)
    assert mngr("stop", "foo").ok().out == "Stopped foo.\n"
    assert not lives(pid)
    assert mngr.tmux("list-sessions", "-F", "#S").split() == [mngr.agent("bar")["id"]]
    assert mngr("s", "foo").ok().out == "foo is already STOPPED.\n"
    done = mngr("start", "foo", "bar").ok()
    assert (done.out, done.err) == ("Started foo.\nbar is already RUNNING.\n", "")
    assert (launches(mngr, "foo"), launches(mngr, "bar")) == (2, 1)
    again = mngr("restart", "foo", "--format", "json").ok().json()["agents"]
    assert [(agent["name"], agent["state"]) for agent in again] == [("foo", "RUNNING")]
    assert launches(mngr, "foo") == 3
    quiet = mngr("stop", "--all", "-q").ok()
    assert (quiet.err, len(quiet.out.split())) == ("", 2)
    assert (mngr.state("foo"), mngr.state("bar")) == ("STOPPED", "STOPPED")
    assert mngr("stop", "--all").ok().out == ""


def test_each_target_stands_for_itself(local: Cli) -> None:
    local.create("foo", *NONE)
    local.create("bar", *NONE)
    some = local("stop", "foo", "fooo", "bar", "nosuch")
    assert some.code == 3
    assert some.err.splitlines() == [
        "mngr: no agent 'fooo'; did you mean 'foo'?",
        "mngr: no agent 'nosuch'; see `mngr list`",
    ]
    assert some.out == "Stopped foo.\nStopped bar.\n"
    local("start", "fooo").fails(4, "fooo", "did you mean 'foo'?")
    none = local("start", "x1", "x2")
    assert (none.code, none.err.count("no agent")) == (4, 2)
    assert (local.state("foo"), local.state("bar")) == ("STOPPED", "STOPPED")
    ids = local("list", "--stopped", "--ids").ok().out
    local("start", "-", input=ids).ok()
    assert (local.state("foo"), local.state("bar")) == ("RUNNING", "RUNNING")
    local("stop", "--session", local.agent("foo")["id"], "foo").ok()
    assert (local.state("foo"), local.state("bar")) == ("STOPPED", "RUNNING")
    lines = local("stop", "foo", "bar", "--format", "jsonl").ok().out.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["STOPPED", "STOPPED"]
    host = local.agent("foo")["host"]
    local("start", f"foo@{host['name']}.{host['provider_name']}").ok()
    local("stop", f"foo@{host['name']}", "--format", "{name}={state}").ok()


def test_wrong_targets_are_refused(local: Cli) -> None:
    for command in ("start", "stop", "restart", "archive", "destroy", "label", "wait"):
        local(command).fails(2, "no agent given", "mngr list")
        local(command, "nosuch").fails(4, "nosuch")
        assert local(command, "-", input="\n").ok().err == ""
    local("stop", "not a name").fails(2, "not a name")
    local("stop", "foo:src").fails(2, "path")
    local("stop", "").fails(2, "the name of the agent is empty; see `mngr list`")
    local("stop", "@localhost").fails(2, "is not an agent")
    local("stop", "--all", "foo").fails(2, "--all")
    local("stop", "--session", "work").fails(4, "work")
    local("stop", "foo", "--sesion", "x").fails(2, "--sesion", "--session")
    local("start", "--connect", "-", input="").fails(2, "--connect", "one agent")


def test_a_host_that_cannot_be_stopped_is_refused_before_its_agents_are_stopped(
    local: Cli, tmp_path: Path
) -> None:
    local.create("foo")
    for more in ((), ("--dry-run",)):
        local("stop", "foo", "--stop-host", *more).fails(2, "host localhost cannot be stopped")
    assert local.state("foo") == "RUNNING"
    with on_folders(tmp_path / "jammed") as jammed:
        for key, script in (("START", "true"), ("STOP", "echo jammed >&2; exit 1")):
            jammed.env[f"MNGR__PROVIDERS__FOLDERS__{key}"] = script
        jammed.create("foo@.folders")
        some = jammed("stop", "foo", "--stop-host").fails(3, "host foo was not stopped: ", "jammed")
        assert some.out == "Stopped foo.\n"
        assert jammed.state("foo") == "STOPPED"
        told = jammed("stop", "foo", "--stop-host", "--format", "json").fails(3, "jammed")
        assert [each["name"] for each in told.json()["agents"]] == ["foo"]
        [error] = told.json()["errors"]
        assert (told.json()["hosts"], f"mngr: {error['message']}\n") == ([], told.err)
        jammed.env["MNGR__PROVIDERS__FOLDERS__STOP"] = "true;"
        told = jammed("stop", "foo", "--stop-host", "--format", "json").ok()
        assert (told.json()["hosts"], told.json()["errors"]) == (["foo"], [])
        quiet = jammed("stop", "foo", "--stop-host", "-q").ok()
        assert quiet.out == f"{jammed.agent('foo')['id']}\n"


def test_stopping_what_has_finished_records_nothing(mngr: Cli) -> None:
    mngr.create("foo", *NONE, "--", "sh", "-c", "exit 3")
    mngr("wait", "foo", "FAILED").ok()
    before = records(mngr, "foo"), mngr("event", "foo").ok().out
    assert mngr("stop", "foo").ok().out == "foo is already FAILED (exit code 3).\n"
    assert (records(mngr, "foo"), mngr("event", "foo").ok().out) == before
    assert mngr.state("foo") == "FAILED"


def test_a_program_that_outlives_the_terminal_server_is_stopped(mngr: Cli) -> None:
    mngr.create("foo", "--", "sh", "-c", "trap '' HUP; touch ready; exec sleep 1000")
    until((mngr.work_dir("foo") / "ready").exists)
    mngr.tmux("kill-server")
    until(lambda: mngr.state("foo") == "LOST")
    assert mngr.processes()
    assert mngr("stop", "foo").ok().out.startswith("foo is already LOST")
    assert not mngr.processes()


def test_a_program_that_ignores_signals_and_hides_still_ends(mngr: Cli, tmp_path: Path) -> None:
    script = tmp_path / "stubborn.sh"
    script.write_text(
        "trap '' TERM HUP INT\n"
        "setsid sh -c 'trap \"\" TERM HUP; touch hidden; while :; do sleep 100; done' &\n"
        "touch ready; while :; do sleep 100; done\n"
    )
    mngr.create("foo", "--", "sh", str(script))
    work = mngr.work_dir("foo")
    until(lambda: (work / "ready").exists() and (work / "hidden").exists())
    mngr("stop", "foo", env={"MNGR__STOP__GRACE": "0.2s"}).ok()
    assert mngr.state("foo") == "STOPPED"
    assert not mngr.processes()


HIDING = """
setsid env -i sh -c 'echo $$ > one; exec sleep 1000' &
(setsid env -i sh -c 'echo $$ > two; exec sleep 1000 < /dev/null > /dev/null 2>&1' &)
env -i sh -c 'echo $$ > three; exec sleep 1000' &
exec sleep 1000
"""


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="only Linux tells")
def test_processes_that_left_the_session_and_dropped_their_environment_end_too(mngr: Cli) -> None:
    mngr.create("other", "--", "sh", "-c", HIDING)
    mngr.create("foo", "--", "sh", "-c", HIDING)
    try:
        pids = {name: hidden_pids(mngr.work_dir(name)) for name in ("foo", "other")}
        mngr("stop", "foo").ok()
        assert [lives(pid) for pid in pids["foo"]] == [False] * 3
        assert [lives(pid) for pid in pids["other"]] == [True] * 3
        mngr("destroy", "--force", "other").ok()
        assert [lives(pid) for pid in pids["other"]] == [False] * 3
    finally:
        for pid in filter(lives, (pid for each in pids.values() for pid in each)):
            os.kill(pid, signal.SIGKILL)


def hidden_pids(work_dir: Path) -> list[int]:
    files = [work_dir / name for name in ("one", "two", "three")]
    until(lambda: all(file.exists() and file.read_text().strip() for file in files))
    return [int(file.read_text()) for file in files]


def test_an_agent_started_by_another_does_not_end_with_it(local: Cli) -> None:
    """This includes the first agent, whose start creates the tmux server."""
    create = " ".join(local.argv("create", "child", "--no-connect", *NONE, "--", "sleep", "1000"))
    local("create", "foo", "--no-connect", *NONE, "--", "sleep", "1000").ok()
    local.close()
    local(
        "exec", "foo", "--", "sh", "-c", f"ulimit -S -m {mark(local.agent('foo')['id'])}; {create}"
    )
    assert local.state("child") == "RUNNING"
    local("stop", "foo").ok()
    local("start", "foo").ok()
    local("stop", "foo").ok()
    assert local.state("child") == "RUNNING"


def test_an_agent_can_stop_itself(local: Cli) -> None:
    command = " ".join(local.argv("stop", "foo"))
    local.create(
        "foo", "--pass-env", "PYTHONPATH", "--", "sh", "-c", f"{command} 2> said; sleep 1000"
    )
    until(lambda: local.state("foo") == "STOPPED")
    stopped = ["agent_created", "agent_exited", "agent_stopped"]
    until(lambda: local("event", "foo", "--format", "{type}").ok().out.split() == stopped)


def test_archive_puts_aside_and_start_brings_back(local: Cli) -> None:
    local.create("foo", *NONE)
    assert local("archive", "foo", "--dry-run").ok().out == "Would archive foo.\n"
    assert local.state("foo") == "RUNNING"
    assert local("archive", "foo").ok().out == "Archived foo.\n"
    assert local("archive", "foo").ok().out == "foo is already archived.\n"
    assert local("list").ok().out == "No agents found\n"
    [aside] = local("list", "--archived", "--format", "json").ok().json()["agents"]
    assert (aside["state"], aside["archived"]) == ("STOPPED", True)
    local("start", "foo").ok()
    assert local.agent("foo")["archived"] is False
    local("stop", "--archive", "foo").ok()
    assert local("list", "--running").ok().out == "No agents found\n"


def test_start_connects_by_the_configured_command(local: Cli, tmp_path: Path) -> None:
    local.create("foo", *NONE)
    local.create("quick", *NONE, "--", "true")
    local("stop", "foo").ok()
    local("start", "--connect", "foo").fails(2, "terminal")
    seen = tmp_path / "seen"
    connect = {"MNGR__COMMANDS__CONNECT__CONNECT_COMMAND": f"echo $MNGR_AGENT_NAME > {seen}"}
    local("start", "--connect", "foo", env=connect).ok()
    assert seen.read_text() == "foo\n"
    local("start", "--connect", "foo", "quick").fails(2, "one agent")
    until(lambda: local.state("quick") == "DONE")
    seen.unlink()
    local("start", "--connect", "--dry-run", "quick", env=connect).ok()
    assert not seen.exists()


@pytest.mark.dear
def test_rename_changes_the_name_and_nothing_else(mngr: Cli) -> None:
    mngr.create("foo")
    mngr.create("other", *NONE)
    before = mngr.agent("foo")
    assert mngr("rename", "foo", "bar", "--dry-run").ok().out == "Would rename foo to bar.\n"
    assert mngr.agent("foo")["id"] == before["id"]
    assert mngr("mv", "foo", "bar").ok().out == "Renamed foo to bar.\n"
    after = mngr.agent("bar")
    kept = ("id", "work_dir", "initial_branch", "pid", "start_time", "state")
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}
    assert mngr.tmux("show-options", "-v", "-t", f"={after['id']}:", "@mngr_name") == "bar\n"
    assert mngr("rename", "bar", "bar").ok().out == "bar already has that name.\n"
    taken = mngr("rename", "bar", "other").fails(1, "other", "taken; choose another")
    assert "--reuse" not in taken.err
    mngr("rename", "bar", "a b").fails(2, "a b")
    mngr("rename", "foo", "baz").fails(4, "foo")
    mngr("rename", "bar").fails(2, "NEW")
    mngr.create("foo", *NONE)
    assert (
        mngr("rename", "bar", "third", "--format", "json").ok().json()["agents"][0]["old_name"]
        == "bar"
    )


def test_labels_are_set_removed_and_printed(local: Cli) -> None:
    local.create("foo", *NONE, "--label", "a=1", "--", "true")
    local.create("bar", *NONE, "--", "true")
    assert local("label", "bar").ok().out == "No labels found\n"
    assert local("label", "foo", "b=x y", "--dry-run").ok().out == "Would label foo: a=1 b=x y.\n"
    assert local.agent("foo")["labels"] == {"project": "repo", "a": "1"}
    local("label", "foo", "bar", "b=x=y", "c=").ok()
    assert local.agent("foo")["labels"] == {"project": "repo", "a": "1", "b": "x=y", "c": ""}
    assert local.agent("bar")["labels"] == {"project": "repo", "b": "x=y", "c": ""}
    local("label", "foo", "a=2", "--remove", "b", "--remove", "never").ok()
    assert local.agent("foo")["labels"] == {"project": "repo", "a": "2", "c": ""}
    assert local("label", "foo").ok().out.split() == [
        "NAME",
        "LABEL",
        "VALUE",
        "foo",
        "a",
        "2",
        "foo",
        "c",
    ]
    assert local("label", "foo", "--format", "json").ok().json()["agents"][0]["labels"] == {
        "a": "2",
        "c": "",
    }
    local("label", "foo", "=x").fails(2, "=x")
    local("label", "foo", "a b=x").fails(2, "a b")
    local("label", "foo", "k=two\nlines").fails(2, "k", "printable")
    local("label", "k=v").fails(2, "no agent given")


@pytest.mark.dear
def test_fifty_labels_set_at_once_are_all_kept(mngr: Cli) -> None:
    mngr.create("foo", *NONE, "--", "true")
    count = 50 if mngr.provider == "local" else 12
    running = [mngr.start("label", "foo", f"k{number}={number}") for number in range(count)]
    ended = [process.communicate(timeout=120)[1] or process.returncode for process in running]
    assert all(process.returncode == 0 for process in running), ended
    assert mngr.agent("foo")["labels"] == {
        "project": "repo",
        **{f"k{number}": str(number) for number in range(count)},
    }
    assert len(records(mngr, "foo")) == 1
