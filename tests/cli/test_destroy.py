"""destroy moves an agent to the trash and restore moves it back, and nothing is lost."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.cli import Cli, until
from tests.support.screen import Screen

NONE = ("--transfer", "none")


def snapshot(folder: Path) -> dict[str, tuple[int, str]]:
    """Every path below, with its kind, mode and content; .git itself is git's business."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name == ".git":
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            content = os.readlink(path)
        else:
            content = path.read_bytes().hex() if path.is_file() else ""
        found[name] = (mode, content)
    return found


def status(mngr: Cli, work: Path) -> str:
    return mngr.git("status", "--porcelain=v2", "--branch", "--ignored", "-uall", cwd=work)


def work_of_every_kind(mngr: Cli, name: str) -> Path:
    mngr.create(name, "--label", "team=web")
    work = mngr.work_dir(name)
    (work / ".gitignore").write_text("*.ignored\n")
    (work / "committed").write_text("1")
    mngr.commit("work", cwd=work)
    (work / "README").write_text("staged\n")
    mngr.git("add", "README", cwd=work)
    (work / "README").write_text("and changed again\n")
    (work / "added").write_text("index only")
    mngr.git("add", "-N", "added", cwd=work)
    (work / "committed").unlink()
    (work / "odd \n naïve name").write_text("untracked")
    (work / "build.ignored").write_text("ignored")
    (work / "tool").write_text("#!/bin/sh\n")
    (work / "tool").chmod(0o751)
    (work / "secret").write_text("x")
    (work / "secret").chmod(0o600)
    (work / "link").symlink_to("nowhere/at all")
    (work / "empty" / "folder").mkdir(parents=True)
    (work / "locked").mkdir(mode=0o500)
    for nested in ("nested", "unborn"):
        (work / nested).mkdir()
        mngr.git("init", "-q", cwd=work / nested)
        (work / nested / "file").write_text(nested)
    mngr.commit("inner", cwd=work / "nested")
    return work


def test_everything_comes_back_exactly_as_it_was(mngr: Cli) -> None:
    work = work_of_every_kind(mngr, "foo")
    before, index, tip = snapshot(work), status(mngr, work), mngr.git("rev-parse", "HEAD", cwd=work)
    agent = mngr.agent("foo")
    # A branch with commits stays unless asked for; here its commits go as well.
    done = mngr("destroy", "foo", "--force", "--remove-created-branch").ok()
    assert done.out == "Destroyed foo (undo: mngr restore foo).\n"
    assert not work.exists()
    assert mngr.git("branch", "--list", "mngr/*") == ""
    assert mngr("list").ok().out == "No agents found\n"
    assert not mngr.processes()
    listed = mngr("restore").ok().out.splitlines()
    assert listed[0].split() == ["NAME", "ID", "DESTROYED", "BRANCH", "WORK", "DIR"]
    name, _, day, _, zone, branch, place = listed[1].split()
    assert (name, branch, place) == ("foo", "mngr/foo", str(work))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day) and zone == time.strftime("%z")
    assert "Would restore foo" in mngr("restore", "foo", "--dry-run").ok().out
    assert not work.exists()
    assert mngr("restore", "foo").ok().out == ("Restored foo on branch mngr/foo; it is STOPPED.\n")
    assert snapshot(work) == before
    assert status(mngr, work) == index
    assert mngr.git("rev-parse", "mngr/foo") == tip
    assert mngr.git("log", "--format=%s", cwd=work / "nested") == "inner"
    after = mngr.agent("foo")
    for key in ("id", "name", "labels", "project", "command", "work_dir", "create_time"):
        assert after[key] == agent[key]
    mngr("start", "foo").ok()
    assert mngr.state("foo") == "RUNNING"
    assert mngr("restore", "--list", "--format", "json").ok().json()["trash"] == []


def test_a_branch_with_commits_stays_and_an_empty_one_goes(mngr: Cli) -> None:
    mngr.create("busy")
    mngr.create("idle")
    tip = mngr.commit("work", cwd=mngr.work_dir("busy"))
    idle = mngr.work_dir("idle")
    mngr("destroy", "busy", "idle").ok()  # nothing is at risk, so nothing is asked
    assert mngr.git("branch", "--list", "--format=%(refname:short)") == "main\nmngr/busy"
    # Free to be checked out elsewhere while its work lies in the trash.
    mngr.git("worktree", "add", "-q", str(mngr.base / "elsewhere"), "mngr/busy")
    mngr.commit("more", cwd=mngr.base / "elsewhere")
    mngr("restore", "busy").ok()
    assert mngr.git("rev-parse", "HEAD", cwd=mngr.work_dir("busy")) == tip
    assert mngr.git("branch", "--show-current", cwd=mngr.work_dir("busy")) == ""
    mngr("restore", "idle").ok()
    assert mngr.git("branch", "--show-current", cwd=idle) == "mngr/idle"


@pytest.mark.dear
def test_work_at_risk_is_explained_and_nothing_is_touched_without_a_yes(mngr: Cli) -> None:
    mngr.create("risky")
    mngr.create("safe", *NONE)
    work = mngr.work_dir("risky")
    (work / "new file").write_text("x")
    refused = mngr("destroy", "risky").fails(1)
    told = "risky has uncommitted changes (1 untracked file: new file)"
    assert refused.err == f"mngr: {told}; use --force to destroy it anyway\n"
    assert "Destroyed" not in refused.err
    mngr("destroy", "safe", "risky").fails(1, "risky", "new file")
    assert (mngr.state("risky"), mngr.state("safe")) == ("RUNNING", "RUNNING")
    assert (work / "new file").exists()
    dry = mngr("destroy", "risky", "--dry-run").ok()
    assert "new file" in dry.err and dry.out == "Would destroy risky.\n"
    (work / "new file").unlink()
    mngr.commit("only here", cwd=work)
    mngr("destroy", "risky", "-b").fails(1, "only here", "--force")
    assert mngr.state("risky") == "RUNNING"
    mngr("destroy", "risky", "safe").ok()  # the commit's branch stays
    assert mngr.git("log", "-1", "--format=%s", "mngr/risky") == "only here"


def test_every_agent_with_work_at_risk_is_named(local: Cli) -> None:
    for name in ("foo", "bar", "safe"):
        local.create(name)
    for name in ("foo", "bar"):
        (local.work_dir(name) / "new").write_text("x")
    refused = local("destroy", "foo", "nosuch", "safe", "bar").fails(1, "bar has uncommitted")
    assert "no agent 'nosuch'" in refused.err and "foo has uncommitted" in refused.err
    assert local("list", "--format", "{name}").ok().out.split() == ["foo", "bar", "safe"]


def test_a_taken_name_needs_another_one(local: Cli) -> None:
    local.create("foo", "--label", "n=1")
    first = local.work_dir("foo")
    (first / "mine").write_text("first")
    local("rm", "-f", "foo").ok()
    local.create("foo", "--label", "n=2")
    assert local.work_dir("foo") != first
    local("restore", "foo").fails(1, "foo", "taken", "--as")
    assert not first.exists()
    assert "Restored older" in local("restore", "foo", "--as", "older").ok().out
    assert (local.agent("older")["labels"]["n"], local.agent("foo")["labels"]["n"]) == (
        "1",
        "2",
    )
    assert (first / "mine").read_text() == "first"
    local("restore", "nosuch").fails(4, "nosuch")
    local("restore", "nosuch", "--dry-run").fails(4, "nosuch")
    local("restore", "--as", "x").fails(2, "NAME")
    local("restore", "foo", "--as", "a b").fails(4, "foo")
    local("restore", "foo", "--older-than", "1d").fails(2, "--older-than")


def test_of_one_name_destroyed_twice_the_last_comes_back(local: Cli) -> None:
    for label in ("n=1", "n=2"):
        local.create("foo", *NONE, "--label", label, "--", "true")
        local("destroy", "-f", "foo").ok()
    rows = local("restore", "--list", "--format", "jsonl").ok().out.splitlines()
    assert len(rows) == 2
    local("restore", "foo").ok()
    assert local.agent("foo")["labels"]["n"] == "2"
    [left] = local("restore", "--format", "{id}").ok().out.split()
    local("restore", left, "--as", "bar").ok()
    assert local.agent("bar")["labels"]["n"] == "1"


def test_a_deleted_source_repository_does_not_hold_the_files_back(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    (work / "mine").write_text("precious")
    before = snapshot(work)
    shutil.rmtree(mngr.repo)
    at = mngr.base
    mngr("destroy", "foo", "--force", cwd=at).ok()
    assert not work.exists()
    mngr("restore", "foo", cwd=at).ok()
    assert snapshot(work) == before
    mngr("destroy", "foo", "-f", cwd=at).ok()
    mngr("restore", "foo", "--purge", "-f", cwd=at).ok()
    assert not list((mngr.home / "trash").iterdir())


def test_a_work_directory_mngr_did_not_make_stays_where_it_is(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    (mngr.repo / "mine").write_text("x")
    assert mngr("destroy", "foo").ok().out.startswith("Destroyed foo")
    assert (mngr.repo / "mine").exists()
    mngr("restore", "foo").ok()
    assert mngr.agent("foo")["work_dir"] == str(mngr.repo)


def test_a_copied_directory_comes_back_too(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "rsync")
    work = mngr.work_dir("foo")
    (work / "README").write_text("changed")
    before = snapshot(work)
    mngr("destroy", "foo").fails(1, "README", "--force")
    mngr("destroy", "--session", mngr.agent("foo")["id"], "-f").ok()
    assert not work.exists()
    mngr("restore", "foo").ok()
    assert snapshot(work) == before


def test_purging_is_for_good_and_asks_first(mngr: Cli) -> None:
    for name in ("foo", "bar"):
        mngr.create(name)
        (mngr.work_dir(name) / "locked").mkdir(mode=0o500)
        mngr.commit("work", cwd=mngr.work_dir(name))
    mngr("destroy", "-f", "-b", "foo", "bar").ok()
    mngr("restore", "--purge").fails(2, "--older-than")
    mngr("restore", "--purge", "foo").fails(1, "foo", "--force")
    assert mngr("restore", "--purge", "--older-than", "1h", "-f").ok().err == "Nothing to remove.\n"
    assert "Would remove foo" in mngr("restore", "foo", "--purge", "--dry-run").ok().out
    assert len(list((mngr.home / "trash").iterdir())) == 2
    assert "Removed foo" in mngr("restore", "foo", "--purge", "--force").ok().out
    assert mngr("restore", "--format", "{name}").ok().out == "bar\n"
    mngr("restore", "--purge", "--older-than", "0s", "--force").ok()
    assert not list((mngr.home / "trash").iterdir())
    assert mngr.git("for-each-ref", "refs/mngr") == ""
    assert mngr.git("worktree", "list").count("\n") == 0
    assert mngr("restore").ok().out == "The trash is empty\n"
    mngr("restore", "--purge", "foo", "-f").fails(4, "foo")


def test_destroying_several_reports_each(local: Cli) -> None:
    local.create("foo", *NONE)
    local.create("bar", *NONE)
    some = local("destroy", "foo", "nosuch", "bar", "--format", "json")
    assert some.code == 3
    assert [row["name"] for row in some.json()["agents"]] == ["foo", "bar"]
    assert "nosuch" in some.err
    local("destroy", "--session", "work").fails(4, "work")
    assert local("destroy", "-", input="").ok().err == ""


def test_a_person_is_asked_per_agent_and_no_means_no(local: Cli) -> None:
    for name in ("foo", "bar"):
        local.create(name)
        (local.work_dir(name) / "mine").write_text("x")
    with Screen(local) as screen:
        screen.mngr("destroy", "foo", "bar")
        screen.shows("foo has uncommitted changes (1 untracked file: mine). Destroy it? [y/N]")
        screen.keys("n", "Enter")
        screen.shows("bar has uncommitted changes (1 untracked file: mine). Destroy it? [y/N]")
        screen.keys("y", "Enter")
        screen.shows("mngr: foo was kept", "Destroyed bar (undo: mngr restore bar).")
        screen.mngr("destroy", "foo")
        until(lambda: screen.text().count("foo has uncommitted") == 2)
        screen.keys("Enter")
        until(lambda: screen.text().count("mngr: foo was kept") == 2)
    assert [row["name"] for row in local("list", "--format", "json").ok().json()["agents"]] == [
        "foo"
    ]


def test_a_copy_that_nobody_changed_is_no_work_at_risk(mngr: Cli) -> None:
    plain = mngr.base / "plain"
    (plain / "sub").mkdir(parents=True)
    (plain / "sub" / "file").write_text("one")
    (plain / "old").write_text("one")
    copy = ("--from", str(plain), "--")
    mngr.create("same", *copy, "cat", "sub/file")
    (plain / "old").write_text("changed in the source, which is not the agent's work")
    mngr("destroy", "same").ok()
    mngr("restore", "same").ok()
    mngr("destroy", "same").ok()
    mngr.create("edited", *copy, "sh", "-c", "echo two > sub/file; rm old; exec sleep 1000")
    until(lambda: not (mngr.work_dir("edited") / "old").exists())
    mngr("destroy", "edited").fails(1, "sub/file")
    (mngr.state_dir("edited") / "copied").unlink()
    mngr("destroy", "edited").fails(1, "1 file that exists nowhere else")


LAST_PID = Path("/proc/sys/kernel/ns_last_pid")


def process_with(pid: int) -> subprocess.Popen[bytes]:
    """Return a session leader with that pid; other processes may get it first, and end."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        LAST_PID.write_text(str(pid - 1))
        found = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        if found.pid == pid:
            return found
        found.kill()
        found.wait()
    raise AssertionError(f"no process got the pid {pid}")


@pytest.mark.skipif(not os.access(LAST_PID, os.W_OK) or os.getuid() != 0, reason="needs root")
def test_a_process_that_got_the_pid_of_an_ended_launcher_is_not_ended(local: Cli) -> None:
    local.create("foo", "--", "true")
    local("wait", "foo").ok()
    other = process_with(int(local.tmux("list-panes", "-aF", "#{pane_pid}")))
    try:
        local("destroy", "foo").ok()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
