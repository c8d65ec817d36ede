"""kill -9 while work travels: nothing is lost, and a repeat completes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.cli import Cli, Result

MIRROR = ("mirror_made", "mirror_updated", "cloned")
PULL = ("fetched", "replaced_kept")
FILES = ("staged",)
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
    assert "up to date" in mngr("pull", "foo").ok().out


@pytest.mark.parametrize("step", FILES)
def test_a_copy_killed_before_anything_is_placed_changes_nothing(mngr: Cli, step: str) -> None:
    work = working(mngr)
    (work / "out").mkdir()
    (work / "out/0").write_text("0")
    killed(mngr, step, "pull", "foo", "out")
    assert not (mngr.repo / "out").exists()
    mngr("pull", "foo", "out").ok()
    assert (mngr.repo / "out/0").read_text() == "0"


OLD, NEW = ("old\n", "new\n" * 1000)
NAMES = ("0", "1", "2", "deep/3", "link", "new/4", "new/5")


def fill(folder: Path, content: str, names: tuple[str, ...]) -> None:
    (folder / "deep").mkdir(parents=True)
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        if name == "link":
            (folder / name).symlink_to("deep")
        else:
            (folder / name).write_text(content)


def killer(mngr: Cli, moment: int) -> dict[str, str]:
    """A `mv` that kills the whole placing script before or after its N-th call."""
    folder = mngr.base / f"killer{moment}"
    folder.mkdir()
    script = f"""#!/bin/sh
echo >> {folder}/calls
[ "$(wc -l < {folder}/calls)" -eq {moment // 2 + 1} ] || exec /bin/mv "$@"
[ {moment % 2} -eq 0 ] || /bin/mv "$@"
kill -9 0
"""
    (folder / "mv").write_text(script)
    (folder / "mv").chmod(0o755)
    return {"PATH": f"{folder}:{mngr.env['PATH']}"}


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_a_copy_killed_at_any_rename_leaves_each_file_old_or_new_and_a_repeat_completes_it(
    mngr: Cli, verb: str
) -> None:
    work = working(mngr)
    source, target = (work, mngr.repo) if verb == "pull" else (mngr.repo, work)
    fill(source / "out", NEW, NAMES)
    (source / "out/link").unlink()
    (source / "out/link").write_text(NEW)
    for moment in range(25):
        if (target / "out").exists():
            shutil.rmtree(target / "out")
        fill(target / "out", OLD, NAMES[:5])
        done = mngr(verb, "foo", "out", "--force", env=killer(mngr, moment))
        if done.code == 0:
            break
        for name in NAMES[:4]:
            assert (target / "out" / name).read_text() in (OLD, NEW), (moment, name)
        link = target / "out/link"
        assert link.is_symlink() or link.read_text() == NEW
        assert sorted(each.name for each in (target / "out/deep").iterdir())[-1:] == ["3"]
        new = target / "out/new"
        assert not new.exists() or sorted(each.name for each in new.iterdir()) == ["4", "5"]
        mngr(verb, "foo", "out", "--force").ok()
        left = sorted(str(each.relative_to(target / "out")) for each in files(target / "out"))
        assert left == sorted(NAMES), moment
        assert all((target / "out" / name).read_text() == NEW for name in NAMES)
    assert moment == 24, "each of six paths is moved twice"


def files(folder: Path) -> list[Path]:
    return [each for each in folder.rglob("*") if not each.is_dir()]


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
