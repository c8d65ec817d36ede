"""Nothing is lost between destroy, restore and gc, and nothing foreign is moved or removed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.api import Mngr
from mngr.errors import MngrError, NotFound, Refused
from mngr.plugins.registry import load_registry
from mngr.settings.layers import Config
from tests.support.cli import PAUSE_AT, Cli, until
from tests.support.screen import Screen

pytestmark = pytest.mark.dear

NONE = ("--transfer", "none")
AT_ONCE = {"MNGR__TRASH__KEEP": "0s"}


def api(cli: Cli) -> Mngr:
    config = Config.load(str(cli.controller_home), str(cli.repo), cli.env | AT_ONCE, [])
    return Mngr(config, load_registry(config))


def trash(cli: Cli, agent_id: str = "") -> Path:
    """The folder of the one agent in the trash, or of a certain one."""
    folders = [path for path in (cli.home / "trash").iterdir() if agent_id in path.name]
    assert len(folders) == 1, folders
    return folders[0]


def edit(file: Path, **changes: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}) + "\n")


def record_in(folder: Path) -> Path:
    (found,) = folder.glob("agent.*.json")
    return found


def head(cli: Cli, where: Path) -> str:
    return cli.git("rev-parse", "HEAD", cwd=where)


def branch(cli: Cli, where: Path) -> str:
    return cli.git("branch", "--show-current", cwd=where)


def test_a_plan_of_gc_does_not_harm_an_agent_restored_since(mngr: Cli) -> None:
    mngr.create("keep")
    mngr("snapshot", "create", "keep").ok()
    snapshots = mngr.git("for-each-ref", "refs/mngr/snapshots")
    work = mngr.work_dir("keep")
    mngr("destroy", "-f", "keep").ok()
    (leftover,) = api(mngr).leftovers()
    mngr("restore", "keep").ok()
    with pytest.raises(MngrError, match="keep"):
        leftover.remove()
    assert mngr.git("for-each-ref", "refs/mngr/snapshots") == snapshots != ""
    assert branch(mngr, work) == "mngr/keep"
    # Half restored: its work directory is back, its record is not.
    mngr("destroy", "-f", "keep").ok()
    (leftover,) = api(mngr).leftovers()
    assert mngr("restore", "keep", env={"MNGR_KILL_AT": "work_restored"}).code == -9
    with pytest.raises(MngrError, match="keep"):
        leftover.remove()
    mngr("restore", "keep").ok()
    assert mngr.git("for-each-ref", "refs/mngr/snapshots") == snapshots
    assert branch(mngr, work) == "mngr/keep"


def again(mngr: Cli, name: str) -> str:
    """Destroy an agent once more, with something in its directory that is nowhere else."""
    (mngr.work_dir(name) / "mine").write_text("precious")
    mngr("destroy", "-f", name).ok()
    return f"{name} was destroyed again"


def test_a_plan_of_gc_does_not_harm_an_agent_destroyed_again_since(mngr: Cli) -> None:
    mngr.create("keep")
    mngr("destroy", "-f", "keep").ok()
    (old,) = api(mngr).leftovers()
    mngr("restore", "keep").ok()
    told = again(mngr, "keep")
    with pytest.raises(MngrError, match=told):
        old.remove()
    # Its note is left, and the agent is restored but for that.
    assert mngr("restore", "keep", env={"MNGR_KILL_AT": "state_restored"}).code == -9
    (restored,) = api(mngr).leftovers()
    assert restored.why == "its agent was restored"
    mngr("restore", "keep").ok()
    told = again(mngr, "keep")
    with pytest.raises(MngrError, match=told):
        restored.remove()
    mngr("restore", "keep").ok()
    assert (mngr.work_dir("keep") / "mine").read_text() == "precious"


def test_a_restore_on_a_list_that_is_old_says_so(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    local("destroy", "foo").ok()
    mine = api(local)
    (listed,) = mine.trashed()
    local("gc", env=AT_ONCE).ok()
    with pytest.raises(MngrError, match="foo is no longer in the trash"):
        mine.restore(listed)
    assert not list((local.home / "agents").iterdir())


def test_a_commit_made_in_the_trash_is_kept_and_named(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    (work / "f").write_text("1")
    tip = mngr.commit("work", cwd=work)
    mngr("destroy", "foo").ok()
    (trash(mngr) / "work" / "f").write_text("2")
    late = mngr.commit("late", cwd=trash(mngr) / "work")
    said = mngr("restore", "foo").ok().err
    (kept,) = mngr.git("for-each-ref", "--format=%(refname) %(objectname)").split("\n")[2:]
    ref, commit = kept.split()
    assert ref.startswith("refs/mngr/kept/") and commit == late
    assert late[:12] in said and ref in said and ", branch mngr/foo" not in said
    assert (head(mngr, work), branch(mngr, work)) == (late, "")
    assert mngr.git("rev-parse", "mngr/foo") == tip
    assert (work / "f").read_text() == "2"


def test_the_branch_mngr_made_comes_back_where_it_was_though_another_was_checked_out(
    mngr: Cli,
) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    made = mngr.commit("on its branch", cwd=work)
    mngr.git("checkout", "-q", "-b", "other", "HEAD~1", cwd=work)
    other = mngr.commit("elsewhere", cwd=work)
    mngr("destroy", "-f", "-b", "foo").ok()
    assert mngr.git("branch", "--list", "--format=%(refname:short)") == "main\nother"
    assert "on branch other;" in mngr("restore", "foo").ok().out
    assert mngr.git("rev-parse", "mngr/foo", "other").split() == [made, other]
    assert branch(mngr, work) == "other"


def test_of_two_destroys_the_second_finds_it_gone(local: Cli) -> None:
    local.create("x")
    work = local.work_dir("x")
    (work / "mine").write_text("precious")
    local.commit("work", cwd=work)
    (work / "more").write_text("precious too")
    with Screen(local) as screen:
        screen.mngr("destroy", "x")
        screen.shows("Destroy it? [y/N]")
        local("destroy", "--force", "-b", "x").ok()
        screen.keys("y", "Enter")
        screen.shows("x is gone: it was destroyed in the meantime; see `mngr restore --list`")
    assert local("list").ok().out == "No agents found\n"
    assert local("gc").ok().err == "Nothing to remove.\n"
    assert "branch mngr/x" in local("restore", "x").ok().out
    assert (work / "more").read_text() == "precious too" and branch(local, work) == "mngr/x"


def test_a_destroy_that_was_overtaken_by_a_restore_leaves_everything_alone(mngr: Cli) -> None:
    from mngr.ops.lifecycle import removal

    mngr.create("x")
    work = mngr.work_dir("x")
    mine = api(mngr)
    assert mngr("destroy", "x", env={"MNGR_KILL_AT": "processes_ended"}).code == -9
    (agent,) = mine.list()
    read = {agent.id: (agent.record, agent.evidence.rev)}
    mngr("destroy", "x").ok()
    (outcome,) = removal.remove(mine._world, agent.host, read).values()
    assert isinstance(outcome, NotFound)
    mngr("restore", "x").ok()
    (outcome,) = removal.remove(mine._world, agent.host, read).values()
    assert isinstance(outcome, Refused) and "x was restored in the meantime" in str(outcome)
    assert mngr("restore").ok().out == "The trash is empty\n"
    assert branch(mngr, work) == "mngr/x" and mngr.state("x") == "STOPPED"


@pytest.mark.parametrize("removal", [True, False])
def test_gc_resolves_a_second_record_of_an_agent_in_the_trash(mngr: Cli, removal: bool) -> None:
    mngr.create("x")
    work, state = mngr.work_dir("x"), mngr.state_dir("x")
    tip = mngr.commit("work", cwd=work)
    mngr("destroy", "-f", "-b", "x").ok()
    buried = record_in(trash(mngr) / "agent")
    state.mkdir()
    shutil.copy(buried, state / buried.name)
    edit(state / buried.name, **({} if removal else {"removal": None}))
    mngr("restore", "x").fails(1, "x", "two records", "mngr gc")
    assert "agent x: " in mngr("gc").ok().out
    assert mngr("gc").ok().err == "Nothing to remove.\n"
    assert mngr("list").ok().out == "No agents found\n"
    mngr("restore", "x").ok()
    assert (head(mngr, work), branch(mngr, work)) == (tip, "mngr/x")
    assert not (state / "agent").exists()
    mngr("start", "x").ok()


@pytest.fixture
def precious(mngr: Cli) -> Path:
    """A worktree of the user's own, in the same repository as the agent's."""
    path = mngr.base / "precious"
    mngr.git("worktree", "add", "-q", "-b", "precious", str(path))
    (path / "file").write_text("mine")
    return path


def untouched(mngr: Cli, precious: Path) -> bool:
    return (precious / "file").read_text() == "mine" and branch(mngr, precious) == "precious"


def test_an_edited_record_does_not_move_a_foreign_directory(mngr: Cli, precious: Path) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    edit(record_in(mngr.state_dir("foo")), work_dir=str(precious))
    done = mngr("destroy", "--force", "-b", "foo").ok()
    assert f"{precious} was not changed" in done.err and "Destroyed foo" in done.out
    assert untouched(mngr, precious) and work.exists()
    mngr("gc", env=AT_ONCE).ok()
    assert untouched(mngr, precious) and not list((mngr.home / "trash").iterdir())


def test_a_link_in_the_place_of_a_work_directory_is_not_followed(mngr: Cli, precious: Path) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    shutil.move(work, mngr.base / "away")
    work.symlink_to(precious)
    assert "was not changed" in mngr("destroy", "--force", "-b", "foo").ok().err
    mngr("gc", env=AT_ONCE).ok()
    assert untouched(mngr, precious) and work.is_symlink()


def test_a_work_directory_that_claims_another_worktree_does_not_change_it(
    mngr: Cli, precious: Path
) -> None:
    mngr.commit("mine", cwd=precious)
    mngr.create("foo")
    admin = mngr.repo / ".git" / "worktrees" / precious.name
    (mngr.work_dir("foo") / ".git").write_text(f"gitdir: {admin}\n")
    files = {path: path.read_text() for path in (admin / "HEAD", admin / "gitdir")}
    said = mngr("destroy", "--force", "-b", "foo").ok().err
    assert "the branch mngr/foo was not changed" in said
    mngr("restore", "foo").ok()
    mngr("destroy", "--force", "foo").ok()
    mngr("gc", env=AT_ONCE).ok()
    assert {path: path.read_text() for path in files} == files
    assert untouched(mngr, precious)


def test_a_restore_writes_no_file_where_another_worktree_claims_to_be(mngr: Cli) -> None:
    documents = mngr.user_home / "documents"
    documents.mkdir()
    mngr.create("foo")
    mngr.create("evil")
    admin = mngr.repo / ".git" / "worktrees" / mngr.work_dir("evil").name
    (admin / "gitdir").write_text(f"{documents}/.git\n")
    mngr("destroy", "--force", "foo").ok()
    mngr("restore", "foo").ok()
    assert not any(documents.iterdir()), "git would trust the repository that it names"
    assert branch(mngr, mngr.work_dir("foo")) == "mngr/foo"


@pytest.mark.parametrize("name", ["HEAD", "gitdir"])
def test_a_pipe_in_the_records_of_a_worktree_is_named(local: Cli, name: str) -> None:
    local.create("good")
    local.create("evil")
    pipe = local.repo / ".git" / "worktrees" / local.work_dir("evil").name / name
    pipe.unlink()
    os.mkfifo(pipe)
    try:
        local("destroy", "--force", "good", timeout=20).fails(1, f"{pipe} is not a regular file")
    finally:
        pipe.unlink()
    local("destroy", "--force", "good", timeout=20).ok()


@pytest.mark.parametrize("deep", [False, True])
def test_a_pipe_in_place_of_a_ref_is_named(local: Cli, deep: bool) -> None:
    local.create("good")
    local.create("evil")
    folder = local.repo / ".git"
    head, pipe = folder / "worktrees" / local.work_dir("evil").name / "HEAD", folder / "refs/pipe"
    head.write_text("ref: refs/heads/first\n")
    (folder / "refs/heads/first").write_text("ref: refs/pipe\n" if deep else "ref: refs/second\n")
    (folder / "refs/second").write_text("ref: refs/heads/first\n")  # in a circle
    os.mkfifo(pipe)
    if deep:
        local("destroy", "--force", "good", timeout=20).fails(1, f"{pipe} is not a regular file")
    pipe.unlink()
    local("destroy", "--force", "good", timeout=20).ok()


def test_an_edited_note_or_record_in_the_trash_moves_and_removes_nothing_else(
    mngr: Cli, precious: Path
) -> None:
    other = mngr.base / "other"
    subprocess.run(["git", "clone", "-q", str(mngr.repo), str(other)], env=mngr.env, check=True)
    mngr.git("worktree", "add", "-q", "-b", "theirs", str(mngr.base / "theirs"), cwd=other)
    mngr.create("foo")
    work = mngr.work_dir("foo")
    (work / "mine").write_text("x")
    mngr("destroy", "--force", "foo").ok()
    folder = trash(mngr)
    target = mngr.base / "elsewhere"
    edit(record_in(folder / "agent"), work_dir=str(target))
    mngr("restore", "foo").fails(
        1, str(target), "is not in the directory where", str(folder / "work")
    )
    assert not target.exists() and (folder / "work" / "mine").exists()
    edit(record_in(folder / "agent"), work_dir=str(work))
    note = json.loads((folder / "trash.json").read_text())
    edit(folder / "trash.json", work_dir=str(precious), repository=str(other / ".git"))
    refs = mngr.git("for-each-ref", cwd=other)
    mngr("restore", "foo").ok()
    assert (work / "mine").read_text() == "x" and not target.exists()
    assert mngr.git("for-each-ref", cwd=other) == refs and untouched(mngr, precious)
    mngr("destroy", "--force", "foo").ok()
    edit(folder / "trash.json", work_dir=str(precious), id=f"../../{precious.name}")
    mngr("gc", env=AT_ONCE).ok()
    assert untouched(mngr, precious)
    assert branch(mngr, mngr.base / "theirs") == "theirs"
    assert note["repository"] == str(mngr.repo / ".git")


@pytest.mark.parametrize("link", ["", "gitdir: {outer}/.git\n"])
def test_a_repository_around_the_home_is_not_touched(tmp_path: Path, link: str) -> None:
    """For example with dotfiles: git in a directory of the home finds that repository."""
    mngr = Cli(tmp_path)
    try:
        mngr.git("init", "-q", cwd=tmp_path)
        mngr.git("commit", "-q", "--allow-empty", "-m", "dotfiles", cwd=tmp_path)
        mngr.create("foo")
        work = mngr.work_dir("foo")
        (work / "mine").write_text("x")
        (work / ".git").unlink()
        if link:
            (work / ".git").write_text(link.format(outer=tmp_path))
        said = mngr("destroy", "--force", "foo").ok().err
        assert branch(mngr, tmp_path) == "main"
        assert "the branch mngr/foo was not changed" in said
        assert mngr.git("branch", "--list", "mngr/foo") != ""
        mngr("restore", "foo").ok()
        assert (work / "mine").read_text() == "x" and branch(mngr, tmp_path) == "main"
        mngr("destroy", "--force", "foo").ok()
        mngr("gc", env=AT_ONCE).ok()
        assert branch(mngr, tmp_path) == "main" and not work.exists()
        assert mngr.git("worktree", "list").count("\n") == 0
    finally:
        mngr.close()


def test_what_is_said_is_so(mngr: Cli) -> None:
    mngr.create("foo")
    work = mngr.work_dir("foo")
    mngr.commit("work", cwd=work)
    mngr("destroy", "foo").ok()
    mngr.git("branch", "-f", "mngr/foo", "main")
    done = mngr("restore", "foo").ok()
    assert "HEAD is detached" in done.err and "mngr/foo has moved" in done.err
    assert done.out == "Restored foo; it is STOPPED.\n"
    shutil.rmtree(work)
    said = mngr("destroy", "--force", "foo").ok().err
    assert f"its work directory {work} did not exist" in said
    said = mngr("restore", "foo").ok().out
    assert f"Restored foo without its work directory {work}" in said


def test_a_trash_too_long_for_a_command_line_is_listed(local: Cli) -> None:
    """6,000 names take 280 KB, and an argument list has 256 with so small a stack."""
    many = 6000
    for number in range(many):
        agent_id = f"agent-{number:032x}"
        folder = local.home / "trash" / agent_id
        folder.mkdir(parents=True)
        note = {"id": agent_id, "name": f"n{number}", "time": float(number), "work_dir": "/x"}
        if number % 100 == 0:  # only what has a note can be restored
            (folder / "trash.json").write_text(json.dumps(note) + "\n")
    words = [
        "sh",
        "-c",
        'ulimit -s 1024; exec "$@"',
        "sh",
        *local.argv("restore", "--format", "{id}"),
    ]
    done = subprocess.run(words, env=local.env, cwd=local.repo, capture_output=True, timeout=60)
    assert done.returncode == 0 and len(done.stdout.split()) == many / 100, done.stderr


def test_a_trash_that_cannot_be_read_is_an_error_and_not_empty(local: Cli) -> None:
    (local.home / "trash").mkdir(parents=True)
    stub = local.base / "bin" / "find"
    stub.parent.mkdir()
    stub.write_text("#!/bin/sh\necho 'find: Input/output error' >&2\nexit 1\n")
    stub.chmod(0o755)
    path = {"PATH": f"{stub.parent}:{local.env['PATH']}"}
    local("restore", env=path).fails(1, "the trash of localhost cannot be read")


def test_a_destroy_under_a_slow_clock_is_young(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    local("destroy", "foo").ok()
    folder = trash(local)
    edit(folder / "trash.json", time=1.0)
    assert local("gc").ok().err == "Nothing to remove.\n"
    assert local("restore", "--older-than", "1h").ok().out == "The trash is empty\n"
    long_ago = time.time() - 30 * 86400
    os.utime(folder, (long_ago, long_ago))
    assert local("gc").ok().out.startswith("trash foo")


def test_destroying_many_takes_as_many_visits_as_destroying_one(
    local: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    started: list[str] = []
    for key, value in local.env.items():
        monkeypatch.setenv(key, value)
    for name in ("one", "a", "b", "c", "d"):
        local.create(name)
    mine = api(local)
    by_name = {agent.name: agent for agent in mine.list()}

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event == "os.posix_spawn":
            started.append(str(args[0]))

    sys.addaudithook(watch)
    counts = []
    for names in (["one"], ["a", "b", "c", "d"]):
        started.clear()
        tell = mine.destroy_many([by_name[name] for name in names], drop_branch=True)
        counts.append(len(started))
        assert [tell(by_name[name]).remarks for name in names] == [()] * len(names)
    assert counts[0] == counts[1] <= 4
    assert local.git("branch", "--list", "mngr/*") == ""
    assert mine.list() == []


def test_a_stale_lock_of_one_worktree_does_not_hold_up_the_branches_of_others(local: Cli) -> None:
    for name in ("foo", "bar"):
        local.create(name)
    (admin,) = (local.repo / ".git" / "worktrees").glob("foo-*")
    (admin / "HEAD.lock").touch()
    local("destroy", "-f", "-b", "foo", "bar").ok()
    left = local.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/mngr")
    assert left == "mngr/foo"
    (admin / "HEAD.lock").unlink()
    local("restore", "foo").ok()
    assert branch(local, local.work_dir("foo")) == "mngr/foo"


def test_agents_of_several_repositories_are_destroyed_at_once(local: Cli) -> None:
    other = local.base / "other"
    local.git("clone", "-q", str(local.repo), str(other))
    local.create("foo")
    local.create("bar", "--from", str(other))
    local.create("baz", "--transfer", "none")
    local("destroy", "-f", "-b", "foo", "bar", "baz").ok()
    for repo in (local.repo, other):
        assert local.git("branch", "--list", "mngr/*", cwd=repo) == ""
        assert local.git("worktree", "list", cwd=repo).count("(detached HEAD)") == 1
    for name in ("foo", "bar", "baz"):
        local("restore", name).ok()
    assert branch(local, local.work_dir("bar")) == "mngr/bar"


def test_one_that_cannot_be_destroyed_does_not_hold_up_the_others(local: Cli) -> None:
    for name in ("foo", "bar", "baz"):
        local.create(name)
    stuck = local.work_dir("bar")
    stub = local.base / "bin" / "mv"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\ncase "$*" in *"{stuck} "*) echo "mv: stuck" >&2; exit 1 ;; esac\n'
        'exec /bin/mv "$@"\n'
    )
    stub.chmod(0o755)
    path = {"PATH": f"{stub.parent}:{local.env['PATH']}"}
    done = local("destroy", "foo", "bar", "baz", env=path)
    assert done.code == 3 and "bar could not be moved to the trash: mv: stuck" in done.err
    assert "Destroyed foo" in done.out and "Destroyed baz" in done.out
    assert "being destroyed" in local.agent("bar")["state_reason"] and stuck.exists()
    local("destroy", "bar").ok()
    assert not stuck.exists()


# silent hosts


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__PLUGINS__MODULES"] = '["tests.support.silent"]'
    yield cli
    for name in ("silent", "lost"):
        Path(f"{cli.home}.{name}").unlink(missing_ok=True)
    cli.close()


@pytest.mark.parametrize("how", ["silent", "lost"])
def test_agents_of_a_silent_host_stay(far: Cli, how: str) -> None:
    far.create("foo", *NONE, "--", "true")
    far.create("bar", *NONE)
    far.create("old", *NONE, "--", "true")
    far("destroy", "old").ok()
    far("list").ok()
    for path in (far.home / "names").iterdir():
        os.utime(path, (1, 1))
    files = sorted(far.home.rglob("*"))
    switch = Path(f"{far.home}.{how}")
    switch.touch()
    said = far("list", "--format", "json").ok().json()["agents"]
    assert [(each["name"], each["state"]) for each in said] == [
        ("foo", "UNREACHABLE"),
        ("bar", "UNREACHABLE"),
    ]
    assert "(last known DONE at 20" in said[0]["state_reason"]
    assert "(last known RUNNING at 20" in said[1]["state_reason"]
    done = far("gc", env=AT_ONCE).ok()
    assert (done.out, done.err.splitlines()[-1]) == ("", "Nothing to remove.")
    assert sorted(far.home.rglob("*")) == files
    far("wait", "bar", "--timeout", "1s").fails(124, "bar is UNREACHABLE")
    far("destroy", "-f", "bar").fails(5, "bare")
    switch.unlink()
    assert far.state("bar") == "RUNNING"


def test_wait_goes_on_while_a_host_is_silent(far: Cli) -> None:
    go = far.base / "go"
    far.create("foo", *NONE, "--", "sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done")
    far.create("twin", *NONE)
    switch = Path(f"{far.home}.silent")
    waiting = far.start("wait", "foo")
    switch.touch()
    go.touch()
    far("wait", "twin", "--timeout", "1s").fails(124, "twin is UNREACHABLE")
    assert waiting.poll() is None
    switch.unlink()
    out, err = waiting.communicate(timeout=30)
    assert (waiting.returncode, out) == (0, b"foo DONE exit code 0\n"), err


def test_a_restore_is_reported_though_its_host_falls_silent(far: Cli, tmp_path: Path) -> None:
    far.create("foo", *NONE)
    far("destroy", "-f", "foo").ok()
    assert "foo" not in far("list").ok().out
    gate = tmp_path / "gate"
    modules = {"MNGR__PLUGINS__MODULES": '["tests.support.silent", "tests.support.killing"]'}
    steps = far.environment({PAUSE_AT: f"restored:{gate}", **modules})
    restore = far.start("restore", "foo", env=steps)
    until(Path(f"{gate}.there").exists, 60, "everything is back")
    switch = Path(f"{far.home}.silent")
    switch.touch()
    gate.touch()
    out, err = restore.communicate(timeout=60)
    assert restore.returncode == 0 and b"Restored foo" in out, err
    assert b"host bare does not answer" in err
    switch.unlink()
    assert far.state("foo") == "STOPPED"


# what git keeps for agents that are gone


def test_gc_removes_a_merged_branch_of_an_agent_removed_for_good(mngr: Cli) -> None:
    for name in ("merged", "twin", "open"):
        mngr.create(name)
        mngr.commit(name, cwd=mngr.work_dir(name))
    mngr("destroy", "merged", "twin", "open").ok()
    mngr.git("merge", "-q", "--ff-only", "mngr/merged")
    # An agent in the trash still has its branch.
    assert mngr("gc").ok().err == "Nothing to remove.\n"
    said = mngr("gc", env=AT_ONCE).ok().out
    assert said.count("trash ") == 3 and "branch" not in said
    planned = mngr("gc", "--dry-run").ok().out
    done = mngr("gc").ok()
    assert done.out == planned and done.out.count("\n") == 1
    assert done.out.startswith("branch mngr/merged (")
    assert "main has all its commits" in done.out
    left = mngr.git("branch", "--list", "--format=%(refname:short)").split()
    assert left == ["main", "mngr/open", "mngr/twin"]
    mngr.git("branch", "-D", "mngr/open", "mngr/twin")
    assert mngr("gc").ok().err == "Nothing to remove.\n"
    assert not list((mngr.home / "branches").iterdir())


def test_two_branches_that_have_only_each_other_stay(local: Cli) -> None:
    for name in ("a", "b"):
        local.create(name)
    tip = local.commit("work", cwd=local.work_dir("a"))
    local.git("reset", "-q", "--hard", tip, cwd=local.work_dir("b"))
    local("destroy", "a", "b").ok()
    local("gc", env=AT_ONCE).ok()
    assert local("gc").ok().err == "Nothing to remove.\n"
    assert local.git("branch", "--list", "--format=%(refname:short)").split() == [
        *("main", "mngr/a", "mngr/b")
    ]


def test_gc_removes_mirrors_and_pins_that_nothing_uses(mngr: Cli) -> None:
    for name in ("foo", "bar"):
        mngr.create(name, "--transfer", "git-mirror")
    (mirror,) = (mngr.home / "mirrors").iterdir()
    gone = f"refs/mngr/base/agent-{7:032x}"
    mngr.git("--git-dir", str(mirror), "update-ref", gone, "refs/heads/main")

    def age() -> None:
        for path in (mirror, *mirror.rglob("*")):
            os.utime(path, (1, 1))

    age()
    done = mngr("gc").ok().out
    assert done == f"ref {mirror} {gone}: its agent was removed for good\n"
    mngr("destroy", "-f", "foo").ok()
    mngr("destroy", "-f", "bar").ok()
    age()
    assert mngr("gc").ok().err == "Nothing to remove.\n"
    mngr("restore", "bar").ok()
    mngr("gc", env=AT_ONCE).ok()
    age()
    assert mngr("gc").ok().err == "Nothing to remove.\n"
    mngr.git("fsck", cwd=mngr.work_dir("bar"))
    mngr("destroy", "-f", "bar").ok()
    mngr("gc", env=AT_ONCE).ok()
    assert mngr("gc").ok().err == "Nothing to remove.\n", "a young one may be being made"
    age()
    assert mngr("gc").ok().out == f"mirror {mirror}: no agent uses it\n"
    assert not mirror.exists()
    mngr.create("again", "--transfer", "git-mirror")


def test_what_another_gc_removed_meanwhile_is_no_failure(
    local: Cli, capsys: pytest.CaptureFixture[str]
) -> None:
    from mngr.cli.commands.gc import collected

    local.create("foo", *NONE, "--", "true")
    local("destroy", "foo").ok()
    leftovers = api(local).leftovers()
    assert leftovers
    local("gc", env=AT_ONCE).ok()
    args = argparse.Namespace(dry_run=False, format="json", fields=None, quiet=False)
    assert collected(args, leftovers) == []
    assert "foo" not in capsys.readouterr().out


def test_a_purge_of_which_nothing_succeeded_is_a_failure_and_not_a_partial_one(
    local: Cli, tmp_path: Path
) -> None:
    for name in ("foo", "bar"):
        local.create(name, "--transfer", "none", "--", "true")
    local("destroy", "foo", "bar").ok()
    stub = tmp_path / "bin" / "rm"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\necho "rm: stuck" >&2; exit 1\n')
    stub.chmod(0o755)
    path = {"PATH": f"{stub.parent}:{local.env['PATH']}"}
    purge = ("restore", "--purge", "--older-than", "0s", "--force", "--format", "json")
    stuck = local(*purge, env=path)
    assert stuck.code == 1 and stuck.json()["trash"] == []
    assert len(stuck.json()["errors"]) == 2


def test_several_agents_are_restored_and_purged_at_once(local: Cli) -> None:
    for name in ("foo", "bar", "baz"):
        local.create(name)
    local("destroy", "foo", "bar", "baz").ok()
    local("restore", "foo", "bar", "--as", "x").fails(2, "--as requires a single NAME")
    local("restore", "--purge", "--force", "baz", "nosuch").fails(4, "no agent 'nosuch'")
    local("restore", "foo", "nosuch", "bar").fails(3, "no agent 'nosuch'")
    assert {local.state(name) for name in ("foo", "bar")} == {"STOPPED"}
    local("destroy", "foo", "bar").ok()
    many = local("restore", "foo", "bar", "--format", "json").ok().json()
    assert [agent["name"] for agent in many["agents"]] == ["foo", "bar"] and many["errors"] == []
    local("destroy", "foo", "bar").ok()
    local("restore", "--purge", "--force", "baz", "foo").ok()
    assert local("restore", "--list", "--format", "{name}").ok().out == "bar\n"
