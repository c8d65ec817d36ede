"""Snapshots of agents whose work directory is a clone that borrows from a mirror."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_snapshot import busy, traces, tree
from tests.support.cli import Cli

pytestmark = pytest.mark.dear

MIRROR = ("--transfer", "git-mirror")


def shown(mngr: Cli, name: str) -> list[str]:
    wanted = "{agent}/{number} {name}"
    return mngr("snapshot", "list", name, "--format", wanted).ok().out.split("\n")


def kept(work: Path) -> dict[str, tuple[str, bytes]]:
    """What a snapshot of `busy` holds."""
    return {name: each for name, each in tree(work).items() if name not in ("a.o", "build/out")}


def test_they_are_taken_restored_and_forgotten_in_the_clone_alone(mngr: Cli) -> None:
    work = busy(mngr, "foo", *MIRROR)
    then, before, head = tree(work), traces(work), mngr.git("rev-parse", "HEAD", cwd=work)
    done = mngr("snapshot", "create", "foo", "--name", "early").ok()
    assert "without 2 ignored paths: a.o, build/" in done.out
    assert traces(work) == before, "nobody is disturbed"
    (row,) = mngr("snapshot", "list", "foo", "--format", "json").ok().json()["snapshots"]
    assert row["parent"] == head and row["branch"] == "mngr/foo"

    (work / "README").write_text("later\n")
    (work / "run").unlink()
    now = tree(work)
    assert "saved as foo/2" in mngr("snapshot", "restore", "foo", "early").ok().err
    assert tree(work) == then
    mngr("snapshot", "restore", "foo", "2").ok()
    assert tree(work) == now
    assert mngr.git("rev-parse", "HEAD", cwd=work) == head

    assert shown(mngr, "foo") == ["foo/2 ", "foo/1 early", ""]
    mngr("snapshot", "destroy", "foo", "2").ok()
    assert shown(mngr, "foo") == ["foo/1 early", ""]
    for elsewhere in (mngr.repo, *(mngr.home / "mirrors").glob("*.git")):
        assert mngr.git("for-each-ref", "refs/mngr/snapshots", cwd=elsewhere) == ""


def test_one_is_where_other_agents_start_from(mngr: Cli) -> None:
    work = busy(mngr, "foo", *MIRROR)
    then, head = kept(work), mngr.git("rev-parse", "HEAD", cwd=work)
    mngr("snapshot", "create", "foo", "--name", "then").ok()
    (work / "README").write_text("later\n")
    mngr.commit("later", cwd=work)
    mngr.create("again", *MIRROR, "--from", "foo/then")
    made = mngr.work_dir("again")
    assert tree(made) == then
    assert mngr.git("rev-parse", "HEAD", cwd=made) == head
    mngr("snapshot", "create", "again").ok()
    assert shown(mngr, "again") == ["again/1 ", ""], "its snapshots are its own"


def test_they_survive_the_trash(mngr: Cli) -> None:
    work = busy(mngr, "foo", *MIRROR)
    then, held = tree(work), kept(work)
    mngr("snapshot", "create", "foo", "--name", "then").ok()
    (work / "README").write_text("later\n")
    mngr("destroy", "foo", "--force").ok()
    mngr("snapshot", "list", "foo").fails(4, "no agent 'foo'")
    mngr("create", "bar", "--from", "foo/then", "--", "true").fails(2, "'foo/then' is not")

    mngr("restore", "foo").ok()
    assert (work / "README").read_text() == "later\n"
    assert shown(mngr, "foo") == ["foo/1 then", ""]
    mngr.create("bar", *MIRROR, "--from", "foo/then")
    assert tree(mngr.work_dir("bar")) == held
    mngr("snapshot", "restore", "foo", "then").ok()
    assert tree(work) == then
    mngr("snapshot", "create", "foo").ok()
    assert [row.split()[0] for row in shown(mngr, "foo") if row] == ["foo/3", "foo/2", "foo/1"]
