"""`mngr push`: commits and files go to agents, and nothing there is lost by it."""

from __future__ import annotations

import os
import stat

import pytest

from tests.support.cli import Cli

pytestmark = pytest.mark.dear

MODES = ("git-worktree", "git-mirror", "rsync")


@pytest.mark.parametrize("mode", MODES)
def test_the_current_commit_arrives_with_its_files(mngr: Cli, mode: str) -> None:
    mngr.create("foo", "--transfer", mode)
    work = mngr.work_dir("foo")
    mngr.write("new", "1")
    mngr.commit("one")
    mngr.write("new", "2")
    two = mngr.commit("two")
    mngr("stop", "foo").ok()
    assert "Would push 2 commits" in mngr("push", "foo", "--dry-run").ok().out
    assert not (work / "new").exists()
    done = mngr("push", "foo").ok()
    assert f"Pushed 2 commits to foo: {branch(mngr, work)} is now at {two[:12]}." in done.out
    assert (work / "new").read_text() == "2"
    assert mngr.git("status", "--porcelain", cwd=work) == ""
    row = mngr("push", "foo", "--format", "json").ok().json()
    assert (row["commits"], row["commit"]) == (0, two)


def branch(mngr: Cli, work: object) -> str:
    return mngr.git("branch", "--show-current", cwd=str(work))


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_with_commits_of_its_own_is_left_alone(mngr: Cli, mode: str) -> None:
    mngr.create("foo", "--transfer", mode)
    work = mngr.work_dir("foo")
    (work / "mine").write_text("")
    theirs = mngr.commit("theirs", cwd=work)
    assert "is up to date" in mngr("push", "foo").ok().out, "it is ahead"
    mngr.commit("ours")
    for words in ([], ["--dry-run"]):
        mngr("push", "foo", *words).fails(1, "foo has commits", "mngr pull foo")
    assert mngr.git("rev-parse", "HEAD", cwd=work) == theirs
    mngr("pull", "foo", "--branch", "theirs").ok()
    mngr.git("merge", "-q", "--no-edit", "theirs")
    mngr("push", "foo").ok()
    assert mngr.git("rev-parse", "HEAD", cwd=work) == mngr.git("rev-parse", "HEAD")


def test_uncommitted_changes_stay_and_those_in_the_way_are_named(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    work = mngr.work_dir("foo")
    (work / "README").write_text("theirs\n")
    (work / "aside").write_text("kept")
    mngr.write("other", "1")
    mngr.commit("elsewhere")
    mngr("push", "foo").ok()
    assert (work / "README").read_text() == "theirs\n" and (work / "other").exists()
    before = mngr.git("rev-parse", "HEAD", cwd=work)
    mngr.write("README", "ours\n")
    mngr.write("aside", "ours")
    mngr.commit("the same file")
    mngr("push", "foo").fails(1, "uncommitted changes in the way", "README")
    assert mngr.git("rev-parse", "HEAD", cwd=work) == before
    assert ((work / "README").read_text(), (work / "aside").read_text()) == ("theirs\n", "kept")


def test_a_pushed_commit_outlives_a_pruned_mirror(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    mngr.write("new", "1")
    mngr.commit("to be forgotten")
    mngr("push", "foo").ok()
    mngr.git("reset", "-q", "--hard", "HEAD~")
    (mirror,) = (mngr.home / "mirrors").glob("*.git")
    mngr.git("push", "-q", "--force", str(mirror), "main")
    mngr.git("gc", "--prune=now", cwd=mirror)
    mngr.git("fsck", cwd=mngr.work_dir("foo"))


def test_another_commit_can_be_chosen(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    chosen = mngr.commit("one")
    mngr.commit("two")
    mngr("push", "foo", "--rev", "HEAD~").ok()
    assert mngr.git("rev-parse", "HEAD", cwd=mngr.work_dir("foo")) == chosen
    mngr("push", "foo", "--rev", "nosuch").fails(2, "nosuch")


def test_files_arrive_with_modes_and_links(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "git-mirror")
    work = mngr.work_dir("foo")
    mngr.write("data/deep/-odd\n name", b"\0\xff")
    mngr.write("data/run", "#!").chmod(0o755)
    (mngr.repo / "data/link").symlink_to("nowhere")
    (mngr.repo / "data/empty").mkdir()
    assert "Would copy 3 files" in mngr("push", "foo", "data", "--dry-run").ok().out
    assert not (work / "data").exists()
    mngr("push", "foo", "data").ok()
    assert (work / "data/deep/-odd\n name").read_bytes() == b"\0\xff"
    assert stat.S_IMODE((work / "data/run").stat().st_mode) == 0o755
    assert os.readlink(work / "data/link") == "nowhere"
    assert (work / "data/empty").is_dir()
    again = mngr("push", "foo", "data", "--format", "json").ok().json()
    assert (again["files"], again["same"]) == ([], 3)
    assert not list(mngr.home.glob(".put.*"))


def test_path_is_read_as_cp_reads_it(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    mngr.write("x/f", "1")
    outside = mngr.base / "outside"
    outside.write_text("o")
    mngr("push", "foo", "x/f").ok()
    assert (work / "x/f").read_text() == "1"
    mngr("push", "foo", "x/f", "other").ok()
    mngr("push", "foo", "x/f", "new/").ok()
    assert (work / "other").exists() and (work / "new/f").exists()
    mngr("push", "foo", "x/f", "x/deeper/name").ok()
    assert (work / "x/deeper/name").exists()
    mngr("push", "foo", str(outside)).ok()
    assert (work / "outside").read_text() == "o"
    mngr("push", "foo", str(outside), "x").ok()
    assert (work / "x/outside").exists()
    mngr("push", "foo", "x", "copy").ok()
    assert (work / "copy/f").exists()


def test_differing_files_and_links_there_are_left_alone(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    mngr.write("d/a", "ours")
    mngr.write("d/b\nD", "ours")
    (work / "d").mkdir()
    (work / "d/a").write_text("theirs")
    mngr("push", "foo", "d").fails(1, "d/a", "--force")
    assert [path.name for path in (work / "d").iterdir()] == ["a"], "all or nothing"
    mngr("push", "foo", "d", "--force").ok()
    assert (work / "d/a").read_text() == "ours" and (work / "d/b\nD").exists()
    elsewhere = mngr.base / "elsewhere"
    elsewhere.mkdir()
    (work / "away").symlink_to(elsewhere)
    mngr.write("away/x", "ours")
    for words in (["away"], ["away/x"], ["away/x", "--force"]):
        mngr("push", "foo", *words).fails(1, "in the way", "away")
    assert list(elsewhere.iterdir()) == []
    mngr("push", "foo", "README", "d/a", "--force").ok()
    mngr("push", "foo", "README", "d/../../x").fails(2, "not inside")


def test_wrong_input_is_refused(local: Cli) -> None:
    local("push").fails(2, "no agent given")
    local("push", "nosuch").fails(4, "nosuch")
    local.create("foo")
    local("push", "foo", "nosuch").fails(2, "nosuch", "does not exist")
    local("push", "foo", "--force").fails(2, "--force")
    local("push", "foo", "README", "--rev", "HEAD").fails(2, "--rev")
    local("push", "foo", "README", "/etc/x").fails(2, "not inside")
