"""kill -9 while work travels: nothing is lost, and a repeat completes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli, Result

MIRROR = ("mirror_made", "mirror_updated", "cloned")
PULL = ("fetched", "replaced_kept")
FILES = ("staged", "one_placed")
PUSH = ("objects_sent",)
PUSH_FILES = ("files_sent",)
TRANSFER_STEPS = (*MIRROR, *PULL, *FILES, *PUSH, *PUSH_FILES)

CREATE = ("create", "foo", "--no-connect", "--transfer", "git-mirror", "--", "sleep", "1000")


def killed(mngr: Cli, step: str, *args: str) -> Result:
    result = mngr(*args, env={"MNGR_KILL_AT": step})
    assert result.code == -9, f"{args} was not killed at {step}: {result}"
    return result


def working(mngr: Cli) -> Path:
    mngr(*CREATE).ok()
    return mngr.work_dir("foo")


@pytest.mark.parametrize("step", [*MIRROR, "work_dir", "files"])
def test_a_killed_create_leaves_nothing_in_the_source_and_a_repeat_completes_it(
    mngr: Cli, step: str
) -> None:
    before = mngr.git("for-each-ref")
    killed(mngr, step, *CREATE)
    assert mngr.agent("foo")["state_reason"] == "create interrupted"
    mngr(*CREATE).ok()
    assert mngr.state("foo") == "RUNNING"
    work = mngr.work_dir("foo")
    assert mngr.git("branch", "--show-current", cwd=work) == "mngr/foo"
    assert mngr.git("status", "--porcelain", cwd=work) == ""
    mngr.git("fsck", cwd=work)
    assert mngr.git("for-each-ref") == before
    assert len(list((mngr.home / "mirrors").glob("*.git"))) == 1
    mngr("create", "bar", *CREATE[2:]).ok()


@pytest.mark.parametrize("step", PULL)
def test_a_killed_pull_keeps_both_tips_and_a_repeat_completes_it(mngr: Cli, step: str) -> None:
    work = working(mngr)
    mngr.git("branch", "mngr/foo")
    (work / "f").write_text("theirs")
    theirs = mngr.commit("theirs", cwd=work)
    mine = mngr.git("commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}")
    mngr.git("update-ref", "refs/heads/mngr/foo", mine)
    killed(mngr, step, "pull", "foo", "--force")
    assert mngr.git("rev-parse", "mngr/foo") == mine
    mngr("pull", "foo", "--force").ok()
    assert mngr.git("rev-parse", "mngr/foo") == theirs
    kept = mngr.git("for-each-ref", "--format=%(objectname)", "refs/mngr/replaced").split()
    assert set(kept) == {mine}


def test_a_pull_killed_right_after_its_fetch_is_complete(mngr: Cli) -> None:
    work = working(mngr)
    (work / "f").write_text("theirs")
    theirs = mngr.commit("theirs", cwd=work)
    killed(mngr, "fetched", "pull", "foo")
    assert mngr.git("rev-parse", "mngr/foo") == theirs
    assert "there already" in mngr("pull", "foo").ok().out


@pytest.mark.parametrize("step", FILES)
def test_a_killed_copy_leaves_whole_files_only_and_a_repeat_completes_it(
    mngr: Cli, step: str
) -> None:
    work = working(mngr)
    (work / "out").mkdir()
    for n in range(5):
        (work / f"out/{n}").write_text(str(n) * 1000)
    killed(mngr, step, "pull", "foo", "out")
    arrived = list((mngr.repo / "out").glob("*"))
    assert len(arrived) == (1 if step == "one_placed" else 0)
    assert all(path.read_text() == path.name * 1000 for path in arrived)
    assert not list(mngr.repo.glob("**/*.mngr"))
    mngr("pull", "foo", "out").ok()
    assert sorted(path.name for path in (mngr.repo / "out").iterdir()) == list("01234")


@pytest.mark.parametrize("step", PUSH)
def test_a_killed_push_changes_nothing_there_and_a_repeat_completes_it(
    mngr: Cli, step: str
) -> None:
    work = working(mngr)
    before = mngr.git("rev-parse", "HEAD", cwd=work)
    mngr.write("new", "1")
    tip = mngr.commit("new")
    killed(mngr, step, "push", "foo")
    assert mngr.git("rev-parse", "HEAD", cwd=work) == before
    assert mngr.git("status", "--porcelain", cwd=work) == ""
    mngr("push", "foo").ok()
    assert mngr.git("rev-parse", "HEAD", cwd=work) == tip


def test_a_killed_push_of_files_is_whole_and_can_be_repeated(mngr: Cli) -> None:
    work = working(mngr)
    mngr.write("d/x", "x")
    killed(mngr, "files_sent", "push", "foo", "d")
    assert (work / "d/x").read_text() == "x"
    assert mngr("push", "foo", "d", "--format", "json").ok().json()["files"] == []
