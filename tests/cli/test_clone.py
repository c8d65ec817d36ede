"""`mngr clone` and `mngr migrate`: the same work in another place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.test_snapshot import busy, tree
from tests.support.cli import PAUSE_AT, Cli, until

LEFT_OUT = {"a.o", "build/out"}


def work_of(folder: Path) -> dict[str, tuple[str, bytes]]:
    return {name: entry for name, entry in tree(folder).items() if name not in LEFT_OUT}


def test_a_clone_has_the_same_work_program_labels_and_variables(mngr: Cli) -> None:
    odd = 'it\'s\n$HOME "x"'
    work = busy(
        *(mngr, "foo", "--label", "team=web", "--env", f"ODD={odd}", "-w", "log=sleep 1000"),
        *(
            "--project",
            "p",
            "--",
            "sh",
            "-c",
            'printf %s "$ODD" > "$MNGR_AGENT_STATE_DIR/odd"; sleep 1000',
        ),
    )
    done = mngr("clone", "foo", "bar", "--label", "attempt=2").ok()
    assert done.out == "Cloned foo as bar; it is RUNNING.\n"
    made, copy = mngr.agent("bar"), mngr.work_dir("bar")
    assert work_of(copy) == work_of(work)
    assert mngr.git("rev-parse", "HEAD", cwd=copy) == mngr.git("rev-parse", "HEAD", cwd=work)
    assert made["labels"] == {"project": "p", "team": "web", "attempt": "2"}
    assert made["command"] == mngr.agent("foo")["command"]
    assert mngr.git("branch", "--show-current", cwd=copy) == "mngr/bar"
    until((mngr.state_dir("bar") / "odd").exists)
    until(lambda: (mngr.state_dir("bar") / "odd").read_text() == odd)
    assert mngr("diff", "bar", "--commits").ok().out == mngr("diff", "foo", "--commits").ok().out
    assert "log" in mngr.tmux("list-windows", "-t", f"={made['id']}", "-F", "#{window_name}")
    (copy / "only here").write_text("x")
    assert not (work / "only here").exists()


@pytest.mark.dear
def test_options_of_create_change_what_the_clone_is(mngr: Cli) -> None:
    busy(mngr)
    mngr("clone", "foo", "bar", "--branch", ":side", "--", "sleep", "2000").ok()
    made = mngr.agent("bar")
    assert made["argv"] == ["sleep", "2000"] and made["initial_branch"] == "side"
    row = mngr("clone", "foo", "--format", "json").ok().json()
    assert row["name"] == "foo-2" and row["clone_of"] == mngr.agent("foo")["id"]
    planned = mngr("clone", "foo-2", "--dry-run").ok().out
    assert planned.startswith("Would clone foo-2 as foo-3 on")
    assert len(mngr("list", "--format", "json").ok().json()["agents"]) == 3


@pytest.mark.parametrize("transfer", ["rsync", "git-mirror", "none"])
def test_every_kind_of_work_directory_can_be_cloned(mngr: Cli, transfer: str) -> None:
    mngr.write(".gitignore", "*.o\n")
    mngr.commit("ignore")
    mngr.create("foo", "--transfer", transfer)
    work = mngr.work_dir("foo")
    (work / "new").write_text("1")
    mngr.commit("its own", cwd=work)
    (work / "new").write_text("2")
    (work / "x.o").write_text("3")
    mngr("stop", "foo").ok()
    mngr("clone", "foo", "bar").ok()
    copy = mngr.work_dir("bar")
    assert (copy / "new").read_text() == "2"
    assert (copy == work) is (transfer == "none")
    assert (copy / "x.o").exists() is (transfer != "git-mirror")
    assert mngr.git("rev-parse", "HEAD", cwd=copy) == mngr.git("rev-parse", "HEAD", cwd=work)
    mngr("destroy", "-f", "foo").ok()
    assert (copy / "new").read_text() == "2"
    assert mngr.git("log", "-1", "--format=%s", cwd=copy) == "its own"


def test_a_clone_without_a_name_takes_the_next_number_if_another_is_faster(
    local: Cli, tmp_path: Path
) -> None:
    local.create("foo", "--transfer", "none")
    gate = tmp_path / "gate"
    slow = local.start("clone", "foo", env=local.environment({PAUSE_AT: f"claimed:{gate}"}))
    until(Path(f"{gate}.there").exists, 60, "a claim of foo-2")
    assert "Cloned foo as foo-3" in local("clone", "foo").ok().out
    gate.touch()
    assert b"Cloned foo as foo-2" in slow.communicate(timeout=60)[0]


def test_wrong_input_is_refused(local: Cli) -> None:
    local.create("foo")
    local.create("bar")
    local("clone").fails(2, "no agent given")
    local("clone", "fop").fails(4, "did you mean 'foo'?")
    local("clone", "foo", "bar").fails(1, "the name 'bar' is taken")
    local("clone", "foo", "a b").fails(2, "is not an agent name")
    local("clone", "foo", "--from", "/").fails(2, "--from")
    local("clone", "foo", "--lable", "x=y").fails(2, "'--label'")
    local("migrate", "foo").fails(2, "missing HOST")
    local("migrate", "foo", "nowhere").fails(4, "no host 'nowhere'")
    local("migrate", "foo", "localhost").fails(2, "foo is already on localhost")
    local("migrate", "fop", "localhost").fails(4, "did you mean 'foo'?")
    assert {row["name"] for row in local("list", "--format", "json").ok().json()["agents"]} == {
        "foo",
        "bar",
    }


@pytest.fixture
def both(tmp_path: Path) -> Cli:
    """A world with two hosts, where agents start on the local one."""
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__COMMANDS__CREATE__PROVIDER"] = "local"
    return cli


def closed(cli: Cli) -> None:
    cli.close()
    cli.home = cli.controller_home
    cli.close()


def hosts(cli: Cli) -> dict[str, str]:
    rows = cli("list", "--format", "json").ok().json()["agents"]
    return {row["name"]: row["host"]["name"] for row in rows}


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_migrating_moves_the_work_and_the_original_can_come_back(both: Cli, transfer: str) -> None:
    try:
        work = busy(both, "foo", "--transfer", transfer, "--label", "a=b")
        then, tip = work_of(work), both.git("rev-parse", "HEAD", cwd=work)
        original = both.agent("foo")["id"]
        assert "Would move foo to bare." in both("migrate", "foo", "bare", "--dry-run").ok().out
        done = both("migrate", "foo", "bare").ok()
        assert "Moved foo to bare" in done.out
        assert hosts(both) == {"foo": "bare"}
        made = both.agent("foo")
        assert made["state"] == "RUNNING" and made["labels"]["a"] == "b"
        there = both.work_dir("foo")
        assert str(there).startswith(str(both.base / "bare"))
        assert work_of(there) == then and both.git("rev-parse", "HEAD", cwd=there) == tip
        assert not work.exists()
        assert "foo is already on bare" in both("migrate", "foo", "bare").ok().out
        both("restore", original, "--as", "back").ok()
        assert work_of(both.work_dir("back")) == then
    finally:
        closed(both)


def test_a_copy_that_differs_is_never_run_and_the_original_goes_on(both: Cli) -> None:
    """A git that changes every new worktree: the copy is not what was asked for."""
    try:
        both.create("foo")
        stub = both.base / "bin" / "git"
        stub.parent.mkdir()
        stub.write_text(
            f'#!/bin/sh\n{shutil.which("git")} "$@" || exit\n'
            'case "$PWD $*" in */worktrees/*" checkout -q "*) echo x > README ;; esac\n'
        )
        stub.chmod(0o755)
        both.env["PATH"] = f"{stub.parent}:{both.env['PATH']}"
        both("clone", "foo", "bar").fails(1, "the copy of foo differs from it")
        both("migrate", "foo", "bare").fails(1, "the copy of foo differs from it")
        assert hosts(both) == {"foo": "localhost"} and both.state("foo") == "RUNNING"
    finally:
        closed(both)


def test_a_migration_that_fails_leaves_the_original_running(both: Cli) -> None:
    try:
        both.create("foo")
        both("create", "foo", "--provider", "bare", "--no-connect", "--", "sleep", "1000").ok()
        both("migrate", "foo", "bare").fails(1, "the name 'foo' is taken")
        states = both("list", "--format", "{host.name} {state}").ok().out.splitlines()
        assert sorted(states) == ["bare RUNNING", "localhost RUNNING"]
    finally:
        closed(both)
