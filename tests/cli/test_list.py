"""Every agent is listed, in any state and with any record; filters select correctly."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Cli, until
from tests.support.fleet import fleet
from tests.support.screen import Screen

NONE = ("--transfer", "none")
HEADER = "NAME  STATE  AGE  AGENT  CHANGES  REASON"


def names(mngr: Cli, *options: str, input: str | None = None) -> list[str]:
    found = mngr("list", "--format", "{name}", *options, input=input)
    return found.ok().out.split()


def broken(mngr: Cli, content: str, number: int) -> str:
    agent_id = f"agent-{number:032x}"
    folder = mngr.home / "agents" / agent_id
    folder.mkdir(parents=True)
    (folder / "agent.1.json").write_text(content)
    return agent_id


def test_an_empty_world_says_so_in_every_format(mngr: Cli) -> None:
    assert mngr("list").ok().out == "No agents found\n"
    assert mngr("ls", "--format", "json").ok().json() == {"agents": [], "errors": []}
    assert mngr("list", "--format", "jsonl").ok().out == ""
    assert mngr("list", "--ids").ok().out == ""
    assert not (mngr.controller_home / "agents").exists(), "looking made something"


@pytest.mark.dear
def test_filters_choose_and_combine(mngr: Cli) -> None:
    mngr.create("runs", *NONE, "--label", "team=web", "--project", "one")
    mngr.create("fails", *NONE, "--label", "team=ops", "--", "sh", "-c", "exit 3")
    mngr.create("stops", *NONE)
    mngr("wait", "fails", "FAILED").ok()
    mngr("stop", "stops").ok()
    assert names(mngr) == ["runs", "fails", "stops"]
    assert names(mngr, "--running") == names(mngr, "--active") == ["runs"]
    assert names(mngr, "--failed", "--stopped") == ["fails", "stops"]
    assert names(mngr, "--done", "--lost") == names(mngr, "--type", "claude") == []
    assert names(mngr, "--type", "command", "--failed") == ["fails"]
    assert names(mngr, "stops", "runs") == ["stops", "runs"]
    assert names(mngr, "--waiting") == []
    assert names(mngr, "--label", "team") == ["runs", "fails"]
    assert names(mngr, "--label", "team=web", "--label", "team") == ["runs"]
    assert names(mngr, "--project", "one", "--project", "two") == ["runs"]
    assert names(mngr, "--host-label", "gpu") == []
    assert names(mngr, "--provider", mngr.provider, "--limit", "2") == ["runs", "fails"]
    assert names(mngr, "--local") == ([] if mngr.provider == "bare" else ["runs", "fails", "stops"])
    assert names(mngr, "--remote") == (
        ["runs", "fails", "stops"] if mngr.provider == "bare" else []
    )
    assert names(mngr, "--include", "exit_code == 3", "--include", 'labels.team == "ops"') == [
        "fails"
    ]
    assert names(mngr, "--exclude", 'state == "RUNNING"', "--sort", "name:desc") == [
        "stops",
        "fails",
    ]
    ids = mngr("list", "--ids", "--sort", "name").ok().out.split()
    assert [mngr.agent(name)["id"] for name in ("fails", "runs", "stops")] == ids
    assert names(mngr, "--stdin", input=f"stops\n\n{ids[0]}\n") == ["stops", "fails"]
    table = mngr("list", "--fields", "name,host.name,labels.team,exit_code").ok().out.splitlines()
    host = "bare" if mngr.provider == "bare" else "localhost"
    assert [line.split() for line in table] == [
        ["NAME", "HOST", "NAME", "LABELS", "TEAM", "EXIT", "CODE"],
        ["runs", host, "web"],
        ["fails", host, "ops", "3"],
        ["stops", host, "143"],
    ]
    picked = (
        mngr("list", "--fields", "name,host.name", "--format", "jsonl", "--running").ok().json()
    )
    assert picked == {"name": "runs", "host.name": host}


def test_a_filter_by_host_decides_which_hosts_are_asked(local: Cli) -> None:
    local.create("foo", *NONE)
    with fleet(local, "dead!") as hosts:
        asked = hosts.with_name("dead.asked")
        quiet = (
            ["--local"],
            ["--provider", "local"],
            ["--remote", "--local", "--provider", "local"],
        )
        for words in quiet:
            done = local("list", "--format", "{name}", *words).ok()
            assert (done.out, done.err) == ("foo\n", "")
        local("gc", "--provider", "local").ok()
        assert local("list", "--provider", "docker").ok().out == "No agents found\n"
        local("list", "--provider", "nosuch").fails(2, "nosuch")
        assert not asked.exists()
        rows = local("list", "--hosts", "--provider", "fleet", "--format", "{name}").ok().out
        assert rows == "dead\n"
        for words in ([], ["--remote"], ["--provider", "fleet"]):
            asked.unlink(missing_ok=True)
            assert "dead does not answer" in local("list", *words).ok().err
            assert asked.exists()


def test_an_agent_has_the_documented_shape(mngr: Cli) -> None:
    mngr.create("foo", "--label", "a=b")
    agent = mngr.agent("foo")
    assert set(agent) == {
        *("id", "name", "type", "command", "work_dir", "initial_branch", "labels", "project"),
        *("create_time", "start_time", "state", "state_reason", "state_since", "pid", "archived"),
        *("idle_seconds", "runtime_seconds", "exit_code", "usage", "host", "plugin"),
        *("sandbox", "argv"),
    }
    assert list(agent["host"]) == ["id", "name", "provider", "provider_name", "state", "tags"]
    assert agent["host"]["provider"] == agent["host"]["provider_name"] == mngr.provider
    assert (agent["name"], agent["type"]) == ("foo", "command")
    assert (agent["command"], agent["argv"]) == ("sleep 1000", ["sleep", "1000"])
    assert (agent["initial_branch"], agent["labels"], agent["project"]) == (
        "mngr/foo",
        {"project": "repo", "a": "b"},
        "repo",
    )
    assert os.path.exists(f"/proc/{agent['pid']}")
    human = mngr("list").ok().out.splitlines()
    assert human[0].split() == "NAME STATE AGE AGENT CHANGES REASON".split()
    assert human[1].split()[:2] == ["foo", "RUNNING"]
    assert not any(line != line.rstrip() for line in human)


def test_archived_agents_are_shown_only_when_meant(local: Cli) -> None:
    local.create("kept", *NONE, "--", "true")
    local.create("aside", *NONE, "--", "true")
    local("archive", "aside").ok()
    assert names(local) == ["kept"]
    assert names(local, "--archived") == ["aside"]
    assert names(local, "--include", "archived || true") == ["kept", "aside"]
    assert names(local, "--stdin", input="aside\n") == ["aside"]
    local("rename", "aside", "archived-docs").ok()
    by_name = ("--include", 'name == "archived-docs" || labels.archived == "x" || true')
    assert names(local, *by_name) == ["kept"]


def test_an_unreadable_record_is_one_line_and_hides_nothing(mngr: Cli) -> None:
    mngr.create("fine", *NONE)
    contents = ["{", "", "[]", '{"id": 3}', "null", "\x00" * 100, '{"id": "agent-1"}']
    bad = [broken(mngr, content, number) for number, content in enumerate(contents)]
    human = mngr("list").ok()
    assert [line.split(": ")[:3] for line in human.err.splitlines()] == [
        ["mngr", agent_id, "unreadable record"] for agent_id in bad
    ]
    assert [line.split()[:2] for line in human.out.splitlines()[1:]] == [
        *([agent_id, "LOST"] for agent_id in bad),
        ["fine", "RUNNING"],
    ]
    found = mngr("list", "--format", "json").ok()
    assert found.err == human.err
    assert [error["agent_id"] for error in found.json()["errors"]] == bad
    assert [agent["name"] for agent in found.json()["agents"]] == [*bad, "fine"]
    for command in (["start"], ["label", "a=b"], ["destroy", "-f"]):
        mngr(*command, bad[0]).fails(1, bad[0], "unreadable record", "mngr doctor")
    assert "is already LOST (unreadable record" in mngr("stop", bad[0]).ok().out


def test_hosts_can_be_listed(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    found = mngr("list", "--hosts", "--format", "json").ok().json()["hosts"]
    counts = {
        host["name"]: (host["provider_name"], host["state"], host["agents"]) for host in found
    }
    if mngr.provider == "bare":
        assert counts == {"localhost": ("local", "RUNNING", 0), "bare": ("bare", "RUNNING", 1)}
    else:
        assert counts == {"localhost": ("local", "RUNNING", 1)}
    busy = mngr("list", "--hosts", "--include", "agents > 0", "--format", "{name}").ok().out
    assert busy.split() == ["bare" if mngr.provider == "bare" else "localhost"]
    mngr("list", "--hosts", "--fields", "state_reason").fails(2, "state_reason")


def test_wrong_input_is_refused_even_when_there_is_nothing_to_list(local: Cli) -> None:
    for words, say in (
        (["--include", "nam == 1"], ("nam", "name")),
        (["--include", "state =="], ("--include",)),
        (["--exclude", "1 +"], ("--exclude",)),
        (["--sort", "stat"], ("stat", "state")),
        (["--fields", "name,hots.name"], ("hots.name", "host.name")),
        (["--fields", ""], ("--fields",)),
        (["--limit", "0"], ("--limit", "0")),
        (["--label", "=x"], ("=x",)),
        (["--limit", "x"], ("--limit", "'x'")),
        (["--provider", "locl"], ("locl", "local")),
        (["--watch", "soon"], ("--watch", "soon")),
        (["--watch", "0"], ("--watch",)),
        (["--runing"], ("--runing", "--running")),
        (["--format", "{nam}"], ("nam", "name")),
    ):
        done = local("list", *words).fails(2, *say)
        assert done.out == "", words
    local("list", "--stdin", input="nosuch\n").fails(4, "nosuch")
    local("list", "nosuch").fails(4, "nosuch")


def test_names_on_stdin_that_are_unknown_do_not_hide_the_others(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    done = local("list", "--stdin", "--format", "{name}", input="foo\nfooo\n").fails(
        3, "fooo", "foo"
    )
    assert done.out == "foo\n"


def test_a_reader_that_leaves_early_is_no_error(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    command = f"{' '.join(local.argv('list'))} | head -1"
    done = subprocess.run(
        ["sh", "-c", command], env=local.env, cwd=local.repo, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (f"{HEADER}\n", "")


def test_watching_prints_again_until_interrupted(local: Cli) -> None:
    local.create("foo", *NONE)
    watching = local.start("list", "--watch", "0.1", "--format", "{name} {state}")
    assert watching.stdout is not None
    assert [watching.stdout.readline() for _ in range(3)] == [
        b"foo RUNNING\n",
        b"\n",
        b"foo RUNNING\n",
    ]
    local("stop", "foo").ok()
    for line in watching.stdout:
        if line == b"foo STOPPED\n":
            break
    watching.send_signal(signal.SIGINT)
    assert (watching.wait(10), watching.communicate()[1]) == (0, b"")


def test_listing_needs_one_program_and_nothing_slow(local: Cli, tmp_path: Path) -> None:
    local.create("foo", *NONE)
    local("list").ok()  # writes the index of plugins
    log = tmp_path / "started"
    stub = tmp_path / "bin"
    stub.mkdir()
    for program in ("tmux", "git", "sh", "ps", "tar"):
        real = shutil.which(program)
        (stub / program).write_text(f'#!/bin/sh\necho {program} >> {log}\nexec {real} "$@"\n')
        (stub / program).chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *local.argv("list", "--format", "json")],
        env=_plain(local) | {"PATH": f"{stub}:{local.env['PATH']}"},
        cwd=local.repo,
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)["agents"][0]["state"] == "RUNNING"
    assert log.read_text() == "tmux\n"
    ours = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    slow = {"typing", "dataclasses", "subprocess", "contextlib", "pathlib", "threading", "tomllib"}
    created = {
        "mngr.ops.lifecycle.create",
        "mngr.ops.lifecycle.destroy",
        "mngr.git.repository",
        "mngr.query.expression",
    }
    assert ours & {*created, *(slow - _at_any_start(local))} == set()


def _plain(local: Cli) -> dict[str, str]:
    """Settings in variables are read as TOML, which takes its time."""
    return {key: value for key, value in local.env.items() if not key.startswith("MNGR__")}


def _at_any_start(local: Cli) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *local.argv("--version")],
        env=_plain(local), cwd=local.repo, capture_output=True, text=True,
    )  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_removed_socket_is_made_anew_and_nothing_is_lost(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    os.unlink(mngr.socket)
    assert mngr.state("foo") == "RUNNING"
    until(lambda: os.path.exists(mngr.socket))


def test_watching_redraws_a_terminal(local: Cli) -> None:
    local.create("foo", *NONE)
    with Screen(local) as screen:
        screen.mngr("list", "--watch", "0.2")
        screen.shows("foo", "RUNNING")
        local("stop", "foo").ok()
        screen.shows("STOPPED")
        assert screen.text().count("foo") == 1, "the last table was not cleared"
        screen.keys("C-c")
        until(lambda: screen.text().rstrip().endswith("$"))
        assert "Traceback" not in screen.text()
