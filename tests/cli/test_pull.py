"""`mngr pull`: commits and files of agents come here, and nothing here is lost by it."""

from __future__ import annotations

import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.cli import Cli, Result

pytestmark = pytest.mark.dear

MIRROR = ("--transfer", "git-mirror")


def working(mngr: Cli, name: str = "foo", *mode: str) -> Path:
    mngr.create(name, *(mode or MIRROR))
    return mngr.work_dir(name)


def committed(mngr: Cli, work: Path, text: str = "1") -> str:
    (work / "f").write_text(text)
    return mngr.commit(f"say {text}", cwd=work)


def tip(mngr: Cli, branch: str) -> str:
    return mngr.git("rev-parse", branch)


# commits


def test_commits_arrive_under_the_same_name_and_head_does_not_move(mngr: Cli) -> None:
    work = working(mngr)
    before = (mngr.git("symbolic-ref", "HEAD"), tip(mngr, "HEAD"), mngr.git("status", "-s"))
    one, two = committed(mngr, work), committed(mngr, work, "2")
    mngr("stop", "foo").ok()
    would = mngr("pull", "foo", "--dry-run").ok()
    assert "Would fetch 2 commits" in would.out
    assert mngr.git("branch", "--list", "mngr/*") == ""
    done = mngr("pull", "foo").ok()
    assert f"Fetched 2 commits of foo into mngr/foo, now at {two[:12]}." in done.out
    assert (tip(mngr, "mngr/foo"), tip(mngr, "mngr/foo~")) == (two, one)
    after = (mngr.git("symbolic-ref", "HEAD"), tip(mngr, "HEAD"), mngr.git("status", "-s"))
    assert before == after
    assert not (mngr.repo / ".git/FETCH_HEAD").exists()
    assert "up to date" in mngr("pull", "foo").ok().out
    three = committed(mngr, work, "3")
    row = mngr("pull", "foo", "--format", "json").ok().json()
    assert (row["commits"], row["commit"], row["branch"]) == (1, three, "mngr/foo")


def test_a_worktree_agent_has_its_branch_here_already(mngr: Cli) -> None:
    work = working(mngr, "foo", "--transfer", "worktree")
    made = committed(mngr, work)
    assert f"mngr/foo is up to date, at {made[:12]}" in mngr("pull", "foo").ok().out
    mngr("pull", "foo", "--branch", "review").ok()
    assert tip(mngr, "review") == made


def test_a_copy_of_a_repository_gives_its_head(mngr: Cli) -> None:
    work = working(mngr, "foo", "--transfer", "rsync")
    made = committed(mngr, work)
    mngr("pull", "foo").ok()
    assert tip(mngr, "mngr/foo") == made


def test_diverged_work_is_left_alone_and_with_force_its_tip_is_kept(mngr: Cli) -> None:
    work = working(mngr)
    committed(mngr, work)
    mngr("pull", "foo").ok()
    mine = mngr.git("commit-tree", "-p", "mngr/foo", "-m", "mine", "mngr/foo^{tree}")
    mngr.git("update-ref", "refs/heads/mngr/foo", mine)
    assert "up to date" in mngr("pull", "foo").ok().out, "it has all of the agent's"
    theirs = committed(mngr, work, "2")
    refused = mngr("pull", "foo").fails(1, "1 commit that foo does not have", "--force", "--branch")
    assert refused.out == ""
    mngr("pull", "foo", "--dry-run").fails(1, "mngr/foo")
    assert tip(mngr, "mngr/foo") == mine
    mngr("pull", "foo", "--branch", "other").ok()
    assert (tip(mngr, "other"), tip(mngr, "mngr/foo")) == (theirs, mine)
    done = mngr("pull", "foo", "--force").ok()
    assert "refs/mngr/replaced/1/mngr/foo" in done.out
    assert tip(mngr, "mngr/foo") == theirs
    assert tip(mngr, "refs/mngr/replaced/1/mngr/foo") == mine


def test_a_branch_that_is_checked_out_is_refused_with_its_place(mngr: Cli) -> None:
    work = working(mngr)
    committed(mngr, work)
    mngr("pull", "foo").ok()
    mngr.git("worktree", "add", "-q", str(mngr.base / "elsewhere"), "mngr/foo")
    committed(mngr, work, "2")
    for words in ([], ["--force"], ["--dry-run"]):
        mngr("pull", "foo", *words).fails(1, "checked out in", "elsewhere")
    mngr("pull", "foo", "--branch", "main").fails(1, "checked out in", str(mngr.repo))
    mngr("pull", "foo", "--branch", "main", "--force").fails(1, "checked out in")


def test_what_does_not_come_along_is_told(mngr: Cli) -> None:
    work = working(mngr)
    committed(mngr, work)
    (work / "loose").write_text("")
    mngr.git("checkout", "-q", "-b", "aside", cwd=work)
    committed(mngr, work, "2")
    (work / "loose").write_text("")
    mngr.git("rm", "-q", "--cached", "loose", cwd=work)
    done = mngr("pull", "foo").ok()
    assert "aside" in done.err and "uncommitted" in done.err
    assert mngr.git("show", "mngr/foo:f") == "1"


def test_wrong_input_is_refused(local: Cli) -> None:
    local("pull").fails(2, "no agent given")
    local("pull", "nosuch").fails(4, "nosuch")
    working(local)
    local("pull", "foo", "--branch", "a..b").fails(2, "a..b")
    local("pull", "foo", "x", "--branch", "y").fails(2, "--branch")
    local("pull", "foo:x", "y", "z").fails(2, "unexpected argument")
    local.git("branch", "mngr")
    local("pull", "foo").fails(1, "mngr/foo")
    plain = local.base / "plain"
    plain.mkdir()
    local.create("copy", "--from", str(plain))
    local("pull", "copy").fails(2, "not a git repository", "PATH")


def test_twenty_commit_at_once_and_twenty_pulls_bring_each_once(mngr: Cli) -> None:
    batch = "".join(f'{{"name":"a{n}","args":["sleep","1000"]}}\n' for n in range(20))
    mngr("create", "--batch", "-", *MIRROR, input=batch, timeout=120).ok()
    works = {n: next((mngr.home / "worktrees").glob(f"a{n}-????????")) for n in range(20)}
    script = "echo $0 > mine; git add mine; git commit -qm $0"
    running = [
        subprocess.Popen(["sh", "-c", script, str(n)], cwd=work, env=mngr.env)
        for n, work in works.items()
    ]
    assert [each.wait(60) for each in running] == [0] * 20

    def pull(n: int) -> Result:
        return mngr("pull", f"a{n % 20}", "--format", "json", timeout=120)

    with ThreadPoolExecutor(20) as pool:
        rows = [result.ok().json() for result in pool.map(pull, range(20))]
    assert [row["commits"] for row in rows] == [1] * 20
    for n, work in works.items():
        assert tip(mngr, f"mngr/a{n}") == mngr.git("rev-parse", "HEAD", cwd=work)
    assert mngr.git("rev-list", "--count", "--all") == "21"
    mngr.git("fsck", "--strict")


def test_the_same_pull_twenty_times_at_once_succeeds_each_time(mngr: Cli) -> None:
    made = committed(mngr, working(mngr))
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(lambda _: mngr("pull", "foo", timeout=120), range(20)))
    for result in results:
        result.ok()
    assert tip(mngr, "mngr/foo") == made


# files


def filled(mngr: Cli) -> Path:
    work = working(mngr)
    (work / "out/deep").mkdir(parents=True)
    (work / "out/run").write_text("#!/bin/sh\n")
    (work / "out/run").chmod(0o755)
    (work / "out/secret").write_text("s")
    (work / "out/secret").chmod(0o600)
    (work / "out/deep/-odd\n name").write_bytes(b"\0\xff")
    (work / "out/link").symlink_to("deep")
    (work / "out/empty").mkdir()
    return work


def test_a_directory_comes_to_the_same_place_with_modes_and_links(mngr: Cli) -> None:
    filled(mngr)
    assert "Would copy 4 files" in mngr("pull", "foo", "out", "--dry-run").ok().out
    assert not (mngr.repo / "out").exists()
    mngr("pull", "foo", "out").ok()
    out = mngr.repo / "out"
    assert stat.S_IMODE((out / "run").stat().st_mode) == 0o755
    assert stat.S_IMODE((out / "secret").stat().st_mode) == 0o600
    assert (out / "deep/-odd\n name").read_bytes() == b"\0\xff"
    assert os.readlink(out / "link") == "deep"
    assert (out / "empty").is_dir()
    again = mngr("pull", "foo:out", "--format", "json").ok().json()
    assert (again["files"], again["same"]) == ([], 4)


def test_local_is_read_as_cp_reads_it(mngr: Cli) -> None:
    filled(mngr)
    there = mngr.base / "there"
    there.mkdir()
    mngr("pull", "foo", "out/run", str(there)).ok()
    assert (there / "run").exists()
    mngr("pull", "foo", "out/run", str(there / "other name")).ok()
    assert (there / "other name").read_text() == "#!/bin/sh\n"
    mngr("pull", "foo", "out", str(there)).ok()
    assert (there / "out/run").exists()
    mngr("pull", "foo", "out", str(there / "new")).ok()
    assert (there / "new/run").exists()
    mngr("pull", "foo", "out/link", str(there)).ok()
    assert os.readlink(there / "link") == "deep"
    mngr("stop", "foo").ok()
    mngr("pull", "foo", ".", str(there / "all")).ok()
    assert (there / "all/README").exists() and not (there / "all/.git").exists()


def test_differing_files_are_left_alone_without_force(mngr: Cli) -> None:
    filled(mngr)
    mngr.write("out/run", "mine")
    mngr("pull", "foo", "out").fails(1, "run", "--force")
    assert (mngr.repo / "out/run").read_text() == "mine"
    assert not (mngr.repo / "out/secret").exists(), "all or nothing"
    mngr("pull", "foo", "out", "--force").ok()
    assert (mngr.repo / "out/run").read_text() == "#!/bin/sh\n"


def test_nothing_is_written_through_links_or_outside(mngr: Cli) -> None:
    work = filled(mngr)
    outside = mngr.base / "outside"
    outside.mkdir()
    (outside / "x").write_text("mine")
    (mngr.repo / "out").mkdir()
    (mngr.repo / "out/deep").symlink_to(outside)
    mngr("pull", "foo", "out", "--force").fails(1, "in the way", "deep")
    assert [path.name for path in outside.iterdir()] == ["x"]
    (work / "escape").symlink_to(outside)
    mngr("pull", "foo", "escape/x").fails(1, "outside the work directory")
    mngr("pull", "foo", "../x").fails(2, "not inside")
    mngr("pull", "foo", "/etc/passwd").fails(2, "not inside")
    mngr("pull", "foo", "nosuch").fails(4, "nosuch")
    mngr("pull", "foo", "escape").ok()
    assert os.readlink(mngr.repo / "escape") == str(outside), "a link comes as a link"
    mngr.write("run/x", "a directory")
    mngr("pull", "foo", "out/run", str(mngr.base / "repo/run/x/y")).fails(1)


def test_no_stage_is_left_behind(mngr: Cli) -> None:
    filled(mngr)
    mngr("pull", "foo", "out").ok()
    staging = mngr.controller_home / "staging"
    assert list(staging.iterdir()) == []
    mngr("pull", "foo", "out", str(mngr.base / "k"), env={"MNGR_KILL_AT": "staged"})
    assert len(list(staging.iterdir())) == 1 and not (mngr.base / "k").exists()
    mngr("pull", "foo", "out", str(mngr.base / "k")).ok()
    assert list(staging.iterdir()) == []


def test_a_pipe_in_a_directory_is_named_and_left_out(mngr: Cli) -> None:
    folder = working(mngr) / "reports"
    folder.mkdir()
    (folder / "one").write_text("1")
    os.mkfifo(folder / "pipe")
    done = mngr("pull", "foo", "reports").ok()
    assert done.err == "mngr: pipe is neither a file, a directory nor a link; skipped\n"
    assert [each.name for each in (mngr.repo / "reports").iterdir()] == ["one"]


def test_a_pipe_or_a_repository_alone_is_refused(mngr: Cli) -> None:
    mngr.create("foo", "--transfer", "git-worktree")
    os.mkfifo(mngr.work_dir("foo") / "pipe")
    for name in ("pipe", ".git"):
        mngr("pull", "foo", name, "copy").fails(1, "cannot be copied by itself")
    assert not (mngr.repo / "copy").exists()
