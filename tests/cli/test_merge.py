"""`mngr merge`: git's own merge, and a check that can take it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli


def worker(cli: Cli, name: str, *args: str, **files: str) -> Path:
    """An agent with one commit of these files."""
    cli.create(name, *args)
    work = cli.work_dir(name)
    for file, content in files.items():
        (work / file).write_text(content)
    cli.commit(f"by {name}", cwd=work)
    return work


def subjects(cli: Cli) -> list[str]:
    return cli.git("log", "--format=%s").splitlines()


def head(cli: Cli) -> str:
    return cli.git("rev-parse", "HEAD")


def settled(cli: Cli) -> bool:
    return cli.git("for-each-ref", "refs/worktree") == ""


@pytest.mark.dear
def test_commits_of_several_agents_come_together(mngr: Cli) -> None:
    worker(mngr, "one", a="1")
    worker(mngr, "two", b="2")
    copy = worker(mngr, "copy", "--transfer", "rsync", c="3")
    done = mngr("merge", "one", "two", "copy").ok()
    assert done.out.splitlines()[0].startswith("Merged 1 commit of one (")
    assert [(mngr.repo / name).read_text() for name in "abc"] == ["1", "2", "3"]
    assert subjects(mngr)[0] == "Merge agent copy"
    assert mngr.git("branch", "--show-current") == "main" and settled(mngr)
    assert "Merged 0 commits of one: nothing to merge." in mngr("merge", "one").ok().out
    assert copy.exists()


def test_what_is_not_committed_is_named_and_stays(mngr: Cli) -> None:
    work = worker(mngr, "foo", a="1")
    (work / "later").write_text("x")
    done = mngr("merge", "foo").ok()
    assert "foo has uncommitted changes that are not merged: ?? later" in done.err
    assert not (mngr.repo / "later").exists() and (work / "later").exists()


@pytest.mark.dear
def test_a_conflict_leaves_gits_ordinary_state_and_says_how_to_go_on(mngr: Cli) -> None:
    worker(mngr, "one", README="one\n")
    worker(mngr, "two", README="two\n")
    worker(mngr, "three", c="3")
    done = mngr("merge", "one", "two", "three")
    assert done.code == 3
    assert "two conflicts with your branch in README; resolve" in done.err
    assert "git merge --abort" in done.err and "not merged after the conflict: three" in done.err
    assert "<<<<<<<" in (mngr.repo / "README").read_text()
    mngr("merge", "three").fails(1, "a merge is in progress", "git merge --abort")
    mngr.git("merge", "--abort")
    assert (mngr.repo / "README").read_text() == "one\n"
    mngr("merge", "two").fails(1, "two conflicts with your branch in README")
    mngr.git("merge", "--abort")
    mngr("merge", "three").ok()
    mngr("merge", "two", "--squash").fails(1, "git reset --merge")
    mngr("merge", "two").fails(1, "unresolved conflicts: README")
    mngr.git("reset", "-q", "--merge")
    assert settled(mngr)


@pytest.mark.dear
def test_a_check_that_fails_takes_its_merge_back_and_the_next_has_its_turn(mngr: Cli) -> None:
    worker(mngr, "bad", bad="1")
    worker(mngr, "good", good="2")
    (mngr.repo / "README").write_text("mine, unsaved\n")
    (mngr.repo / "new").write_text("mine, untracked\n")
    before = head(mngr)
    check = 'echo "checking $PWD"; test ! -e bad'
    done = mngr("merge", "bad", "good", "--check", check)
    assert done.code == 3
    assert f"checking {mngr.repo}" in done.err and done.out.startswith("Merged 1 commit of good")
    assert "bad: the check failed with exit code 1; the merge was undone" in done.err
    assert (mngr.repo / "good").exists() and not (mngr.repo / "bad").exists()
    assert mngr.git("status", "--porcelain") == "M README\n?? new"
    assert (mngr.repo / "README").read_text() == "mine, unsaved\n"
    assert mngr.git("rev-parse", "HEAD^") == before
    only = mngr("merge", "bad", "--check", check, "--format", "json")
    assert only.code == 1
    (row,) = only.json()["agents"]
    assert row["merged"] is False and row["before"] == row["after"]
    assert settled(mngr)


def test_squashing_makes_one_commit_that_names_the_others(mngr: Cli) -> None:
    work = worker(mngr, "foo", a="1")
    (work / "b").write_text("2")
    mngr.commit("second", cwd=work)
    before = head(mngr)
    done = mngr("merge", "foo", "--squash", "--check", "test -e a -a -e b").ok()
    assert "Merged 2 commits of foo" in done.out
    assert mngr.git("rev-parse", "HEAD^") == before
    message = mngr.git("log", "-1", "--format=%B")
    assert message.startswith("Squash agent foo (mngr/foo)") and "second" in message
    worker(mngr, "bar", c="3")
    assert mngr("merge", "bar", "--squash", "--check", "false").code == 1
    assert mngr.git("rev-parse", "HEAD^") == before and mngr.git("status", "--porcelain") == ""


def test_staged_changes_are_never_swept_up_or_lost(local: Cli) -> None:
    worker(local, "foo", a="1")
    (local.repo / "mine").write_text("staged")
    local.git("add", "mine")
    for option in (["--squash"], ["--check", "false"]):
        local("merge", "foo", *option).fails(1, "staged changes: mine")
    assert local.git("status", "--porcelain") == "A  mine"


def test_changes_in_the_way_are_left_alone(local: Cli) -> None:
    worker(local, "foo", README="theirs\n")
    (local.repo / "README").write_text("mine\n")
    before = head(local)
    overwritten = "Your local changes to the following files would be overwritten by merge: README"
    refused = local("merge", "foo").fails(1)
    assert refused.err == f"mngr: foo was not merged: {overwritten}; your files are untouched\n"
    assert (local.repo / "README").read_text() == "mine\n" and head(local) == before
    assert settled(local)


def test_a_check_that_spoils_the_tree_is_not_undone_by_force(local: Cli) -> None:
    worker(local, "foo", README="theirs\n")
    local("merge", "foo", "--check", "echo spoilt > README; exit 7").fails(
        1, "exit code 7", "git reset --keep"
    )
    assert (local.repo / "README").read_text() == "spoilt\n"
    local.git("checkout", "-q", "README")
    worker(local, "bar", b="1")
    local("merge", "bar", "--check", "git commit --allow-empty -qam more; exit 1").fails(
        1, "moved HEAD"
    )
    assert subjects(local)[0] == "more"


def test_a_dry_run_changes_nothing(mngr: Cli) -> None:
    worker(mngr, "foo", a="1")
    before = head(mngr)
    assert "Would merge 1 commit of foo." in mngr("merge", "foo", "--dry-run").ok().out
    assert head(mngr) == before and not (mngr.repo / "a").exists()


def test_wrong_input_is_refused(local: Cli) -> None:
    worker(local, "foo", a="1")
    plain = local.base / "plain"
    plain.mkdir()
    local.create("plain", "--from", str(plain))
    local("merge").fails(2, "no agent given")
    local("merge", "fop").fails(4, "did you mean 'foo'?")
    local("merge", "plain").fails(1, "git repository of its own")
    local("merge", "foo", cwd=plain).fails(1, "is not in a git repository")
    local.git("init", "-q", "--bare", cwd=plain)
    local("merge", "foo", cwd=plain).fails(1, "is in a bare repository", "change to the repository")
    before = head(local)
    local("merge", "foo", "nosuch").fails(4, "nosuch")
    assert head(local) == before


def test_merging_in_a_subdirectory_or_another_worktree_works_on_that_branch(local: Cli) -> None:
    worker(local, "foo", a="1")
    other = local.base / "other"
    local.git("worktree", "add", "-q", "-b", "side", str(other))
    (other / "sub").mkdir()
    before = head(local)
    local("merge", "foo", "--check", "test -e a", cwd=other / "sub").ok()
    assert (other / "a").exists() and head(local) == before


def test_the_users_hooks_run_for_a_merge_and_for_nothing_else(local: Cli) -> None:
    ran = local.base / "ran"
    for name in ("post-checkout", "reference-transaction", "post-merge"):
        hook = local.repo / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        hook.chmod(0o755)
    local.create("foo")
    local("snapshot", "create", "foo").ok()
    local("destroy", "-f", "foo").ok()
    local("restore", "foo").ok()
    assert not ran.exists()
    local.commit("work", cwd=local.work_dir("foo"))
    ran.unlink()
    local("merge", "foo").ok()
    assert "post-merge" in ran.read_text()
