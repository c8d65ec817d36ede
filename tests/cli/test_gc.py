"""gc removes what mngr recorded creating and no longer uses, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.support.cli import Cli

NONE = ("--transfer", "none")
AT_ONCE = {"MNGR__TRASH__KEEP": "0s"}


def aged(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (1, 1))


def everything(mngr: Cli) -> set[str]:
    """All files of both homes but the ones that just looking may make."""
    homes = {mngr.home, mngr.controller_home}
    made = {"locks", "cache"}
    return {str(p) for home in homes for p in home.rglob("*") if not made & set(p.parts)}


def test_a_dry_run_says_what_the_real_one_does(mngr: Cli) -> None:
    mngr.create("old", *NONE, "--", "true")
    mngr.create("kept", *NONE)
    mngr("destroy", "old").ok()
    killed = mngr("create", "half", "--no-connect", "--", "true", env={"MNGR_KILL_AT": "files"})
    assert killed.code == -9
    before = everything(mngr)
    planned = mngr("gc", "--dry-run", env=AT_ONCE).ok()
    assert everything(mngr) == before
    assert planned.err == "Would remove 2 leftovers.\n"
    kinds = [line.split(":")[0].split(" (")[0] for line in planned.out.splitlines()]
    assert kinds == ["agent half", "trash old"]
    done = mngr("gc", env=AT_ONCE).ok()
    assert (done.out, done.err) == (planned.out, "Removed 2 leftovers.\n")
    # What was interrupted went to the trash, where the next run finds it.
    assert mngr("restore", "--format", "{name}").ok().out == "half\n"
    assert mngr.git("worktree", "list").count("worktrees/half") == 0
    [receipt] = mngr("gc", "--format", "json", env=AT_ONCE).ok().json()["leftovers"]
    assert (receipt["kind"], receipt["removed"], receipt["error"]) == ("trash", True, None)
    empty = mngr("gc", env=AT_ONCE).ok()
    assert (empty.out, empty.err) == ("", "Nothing to remove.\n")
    assert not list((mngr.home / "trash").iterdir())
    assert mngr.git("branch", "--list", "mngr/*") == ""
    assert mngr.state("kept") == "RUNNING"


def test_young_trash_stays(local: Cli) -> None:
    local.create("foo")
    (local.work_dir("foo") / "mine").write_text("x")
    local("destroy", "-f", "foo").ok()
    assert local("gc").ok().out == ""
    assert local("gc", "-S", "trash.keep=1h").ok().out == ""
    local("restore", "foo").ok()
    assert (local.work_dir("foo") / "mine").read_text() == "x"


def test_what_others_made_survives(mngr: Cli) -> None:
    mngr.create("foo")
    mngr("destroy", "-f", "foo").ok()
    home = mngr.home
    foreign = [
        mngr.home / "notes.txt",
        home / "agents" / "not-an-agent" / "file",
        home / "trash" / "somebody-else" / "file",
        home / "worktrees" / "by-hand" / "file",
        home / "names" / "README",
        mngr.user_home / ".put.abcdef",
    ]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("foreign")
    mngr.git("worktree", "add", "-q", "-b", "mngr/mine", str(home / "worktrees" / "mine-12345678"))
    mngr.git("branch", "mngr/old")
    mngr.git("update-ref", "refs/mngr/trash/foreign", "HEAD")
    subprocess.run(
        ["tmux", "-S", mngr.socket, "new-session", "-d", "-s", "mine"], env=mngr.env, check=True
    )
    aged(*foreign, *(path.parent for path in foreign[1:5]))
    mngr("gc", env=AT_ONCE).ok()
    assert all(path.read_text() == "foreign" for path in foreign)
    assert (home / "worktrees" / "mine-12345678" / "README").exists()
    assert (
        mngr.git("branch", "--list", "mngr/*", "--format=%(refname:short)") == "mngr/mine\nmngr/old"
    )
    assert mngr.git("for-each-ref", "--format=%(refname)", "refs/mngr") == "refs/mngr/trash/foreign"
    assert mngr.tmux("list-sessions", "-F", "#S") == "mine\n"


def test_leftovers_of_interrupted_writes_and_void_names_go_when_they_are_old(mngr: Cli) -> None:
    mngr.create("foo", *NONE, "--", "true")
    mngr("rename", "foo", "bar").ok()
    torn = mngr.state_dir("bar") / ".agent.swap.123"
    torn.write_text("x")
    cached = mngr.home / "cache/hosts/.host.json.12ab.tmp"
    cached.parent.mkdir(parents=True)
    cached.write_text("x")
    empty = mngr.home / "agents" / f"agent-{5:032x}"
    empty.mkdir()
    assert mngr("gc").ok().out == ""
    claims = list((mngr.home / "names").glob("foo.*.json"))
    assert claims
    aged(torn, cached, empty, *(mngr.home / "names").iterdir())
    said = mngr("gc").ok().out
    assert [line.split()[0] for line in said.splitlines()] == ["name", *3 * ["file"]]
    assert not any(each.exists() for each in (torn, cached, empty))
    assert not any(claim.exists() for claim in claims)
    mngr("rename", "bar", "foo").ok()


def test_an_interrupted_destroy_is_completed(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    (work / "mine").write_text("x")
    assert mngr("destroy", "-f", "foo", env={"MNGR_KILL_AT": "work_moved"}).code == -9
    assert "agent foo: its destruction was interrupted" in mngr("gc").ok().out
    assert mngr("list").ok().out == "No agents found\n"
    mngr("restore", "foo").ok()
    assert (work / "mine").read_text() == "x"


def test_destroy_can_collect_at_once(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    done = local("destroy", "foo", "--gc", env=AT_ONCE).ok()
    assert done.out.splitlines()[1].startswith("trash foo")
    local("restore", "foo").fails(4, "foo")
    local.create("foo", *NONE, "--", "true")
    told = local("destroy", "foo", "--gc", "--format", "json", env=AT_ONCE).ok().json()
    assert [each["name"] for each in told["agents"]] == ["foo"]
    assert [each["kind"] for each in told["leftovers"]] == ["trash"]
    local.create("foo", *NONE, "--", "true")
    lines = local("destroy", "foo", "--gc", "--format", "jsonl", env=AT_ONCE).ok().out.splitlines()
    assert [json.loads(line).get("kind") for line in lines] == [None, "trash"]


def test_a_thing_that_resists_does_not_spare_the_others(local: Cli, tmp_path: Path) -> None:
    for name in ("foo", "bar"):
        local.create(name, *NONE, "--", "true")
    local("destroy", "foo", "bar").ok()
    # An rm that fails on foo's folder: root may remove anything, so permissions cannot resist.
    stub = tmp_path / "bin" / "rm"
    stub.parent.mkdir()
    foo = json.loads(local("restore", "foo", "--list", "--format", "jsonl").ok().out)["id"]
    stuck = f'case "$*" in *"-rf "*{foo}*) echo "rm: stuck" >&2; exit 1 ;; esac'
    stub.write_text(f'#!/bin/sh\n{stuck}\nexec /bin/rm "$@"\n')
    stub.chmod(0o755)
    path = {"PATH": f"{stub.parent}:{local.env['PATH']}"}
    done = local("gc", env=AT_ONCE | path)
    assert done.code == 3
    assert "stuck" in done.err and "trash foo" in done.err
    assert done.out.startswith("trash bar") and done.out.count("\n") == 1
    assert local("gc", env=AT_ONCE | path).code == 1, "nothing was removed"
    # Half removed, it cannot be restored; the next gc finishes it.
    assert local("restore").ok().out == "The trash is empty\n"
    again = local("gc").ok()
    assert "its removal was interrupted" in again.out and foo in again.out
    assert not list((local.home / "trash").iterdir())


def test_wrong_input(local: Cli) -> None:
    local("gc", "--provider", "locl").fails(2, "locl", "local")
    local("gc", "extra").fails(2, "extra")
    local("gc", "--provider", "local").ok()


def test_the_name_of_an_agent_whose_record_cannot_be_read_stays_claimed(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    (record,) = local.state_dir("foo").glob("agent.*.json")
    record.write_text("{")
    aged(*(local.home / "names").iterdir())
    assert local("gc").ok().out == ""
