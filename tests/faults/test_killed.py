"""kill -9 of the CLI at every step: the next `list` is honest, a repeat or `gc` repairs it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import ROOT, Cli, Result

CREATE = ("claimed", "recorded", "work_dir", "files", "launched")
DESTROY = (
    *("removal_recorded", "processes_ended", "noted", "work_moved", "repaired"),
    "state_moved",
)
RESTORE = ("restore_claimed", "work_restored", "removal_cleared", "state_restored")
PURGE = ("purge_aside", "purge_forgotten")
RENAME = ("name_claimed", "renamed")
STOP = ("intent",)
START = ("launch_recorded",)


def test_every_step_in_the_source_is_killed_here() -> None:
    from tests.faults.test_killed_transfer import TRANSFER_STEPS
    from tests.faults.test_killed_work import WORK_STEPS
    from tests.hosts.test_leases import HOST_STEPS

    source = "".join(path.read_text() for path in (ROOT / "src/mngr").rglob("*.py"))
    named = set(re.findall(r'\b(?:step(?:_of_script)?\(|recorded=)"(\w+)"', source))
    known = {
        *CREATE,
        *DESTROY,
        *RESTORE,
        "restored",
        *PURGE,
        *RENAME,
        *STOP,
        *START,
        *WORK_STEPS,
        *HOST_STEPS,
        *TRANSFER_STEPS,
    }
    assert named == known


def test_no_environment_variable_ends_mngr(mngr: Cli) -> None:
    mngr(*create(mngr), env={"MNGR_KILL_AT": "recorded", "MNGR__PLUGINS__MODULES": "[]"}).ok()


def killed(mngr: Cli, step: str, *args: str) -> Result:
    result = mngr(*args, env={"MNGR_KILL_AT": step})
    assert result.code == -9, f"{args} was not killed at {step}: {result}"
    return result


def create(mngr: Cli) -> list[str]:
    return ["create", "foo", "--no-connect", "--", "sleep", "1000"]


def listed(mngr: Cli) -> dict[str, str]:
    agents = mngr("list", "--format", "json").ok().json()["agents"]
    return {agent["name"]: f"{agent['state']}: {agent['state_reason']}" for agent in agents}


def worktrees(mngr: Cli) -> int:
    return mngr.git("worktree", "list").count("worktrees/")


@pytest.mark.parametrize("step", CREATE)
def test_a_killed_create_is_listed_honestly_and_repeating_it_completes_it(
    mngr: Cli, step: str
) -> None:
    killed(mngr, step, *create(mngr))
    expected = {
        "claimed": {},
        "launched": {"foo": "RUNNING: process is alive"},
    }.get(step, {"foo": "LOST: create interrupted"})
    assert listed(mngr) == expected
    again = mngr(*create(mngr))
    if step == "launched":
        again.fails(1, "taken")
    else:
        again.ok()
    assert listed(mngr) == {"foo": "RUNNING: process is alive"}
    assert worktrees(mngr) == 1
    assert mngr.agent("foo")["initial_branch"] == "mngr/foo"


@pytest.mark.parametrize("step", CREATE[:-1])
def test_gc_puts_a_killed_create_into_the_trash(mngr: Cli, step: str) -> None:
    killed(mngr, step, *create(mngr))
    planned = mngr("gc", "--dry-run").ok().out
    assert mngr("gc").ok().out == planned
    assert listed(mngr) == {}
    done = mngr("gc").ok()
    assert (done.out, done.err) == ("", "Nothing to remove.\n")
    mngr(*create(mngr)).ok()
    assert mngr.agent("foo")["initial_branch"] == "mngr/foo"


def with_work(mngr: Cli) -> Path:
    """An agent with a commit, staged, unstaged, untracked and ignored files."""
    mngr(*create(mngr)).ok()
    work = mngr.work_dir("foo")
    (work / ".gitignore").write_text("ignored\n")
    (work / "committed").write_text("1")
    mngr.commit("work", cwd=work)
    (work / "staged").write_text("2")
    mngr.git("add", "staged", cwd=work)
    (work / "README").write_text("changed\n")
    (work / "untracked").write_text("3")
    (work / "ignored").write_text("4")
    return work


def whole(mngr: Cli, work: Path) -> None:
    """All of `with_work` is there, on its branch, with the index as it was."""
    status = mngr.git("status", "--porcelain", "--branch", cwd=work).splitlines()
    assert status == ["## mngr/foo", " M README", "A  staged", "?? untracked"]
    assert mngr.git("log", "--format=%s", "-1", cwd=work) == "work"
    assert (work / "ignored").read_text() == "4"


@pytest.mark.parametrize("step", DESTROY)
def test_a_killed_destroy_is_listed_honestly_and_repeating_it_completes_it(
    mngr: Cli, step: str
) -> None:
    work = with_work(mngr)
    killed(mngr, step, "destroy", "foo", "--force", "-b")
    now = listed(mngr)
    if step == "state_moved":
        assert now == {}
    else:
        assert "being destroyed" in now["foo"]
        mngr("destroy", "foo", "--force", "-b").ok()
    assert listed(mngr) == {}
    assert mngr.git("branch", "--list", "mngr/foo") == ""
    mngr("restore", "foo").ok()
    whole(mngr, work)


@pytest.mark.parametrize("step", DESTROY[:-1])
def test_gc_completes_a_killed_destroy_and_restore_undoes_it(mngr: Cli, step: str) -> None:
    work = with_work(mngr)
    killed(mngr, step, "destroy", "foo", "--force", "-b")
    mngr("gc").ok()
    assert listed(mngr) == {}
    mngr("restore", "foo").ok()
    whole(mngr, work)


@pytest.mark.parametrize("step", DESTROY[:-1])
def test_a_killed_destroy_can_be_taken_back_at_once(mngr: Cli, step: str) -> None:
    work = with_work(mngr)
    killed(mngr, step, "destroy", "foo", "--force", "-b")
    in_trash = bool(mngr("restore", "--list", "--format", "json").ok().json()["trash"])
    assert in_trash is (step not in ("removal_recorded", "processes_ended"))
    if not in_trash:
        mngr("destroy", "foo", "--force").ok()
    mngr("restore", "foo").ok()
    assert listed(mngr)["foo"].startswith("STOPPED")
    whole(mngr, work)
    mngr("start", "foo").ok()
    assert mngr.state("foo") == "RUNNING"


@pytest.mark.parametrize("step", RESTORE)
def test_a_killed_restore_is_completed_by_repeating_it(mngr: Cli, step: str) -> None:
    work = with_work(mngr)
    mngr("destroy", "foo", "--force", "-b").ok()
    killed(mngr, step, "restore", "foo")
    mngr("restore", "foo").ok()
    whole(mngr, work)
    assert set(listed(mngr)) == {"foo"}
    mngr("gc", env={"MNGR__TRASH__KEEP": "0s"}).ok()
    assert set(listed(mngr)) == {"foo"}
    whole(mngr, work)
    mngr("start", "foo").ok()


def test_a_restore_killed_at_its_end_is_complete(mngr: Cli) -> None:
    work = with_work(mngr)
    mngr("destroy", "foo", "--force", "-b").ok()
    killed(mngr, "restored", "restore", "foo")
    assert set(listed(mngr)) == {"foo"}
    whole(mngr, work)
    mngr("start", "foo").ok()


@pytest.mark.parametrize("step", PURGE)
def test_a_killed_purge_is_finished_by_gc_and_is_not_restored_in_between(
    mngr: Cli, step: str
) -> None:
    with_work(mngr)
    mngr("destroy", "foo", "--force", "-b").ok()
    killed(mngr, step, "gc", "-S", "trash.keep=0s")
    mngr("restore", "foo").fails(4, "no agent 'foo' in the trash")
    assert "its removal was interrupted" in mngr("gc").ok().out
    assert mngr("gc").ok().err == "Nothing to remove.\n"
    assert not list((mngr.home / "trash").iterdir())
    assert mngr.git("for-each-ref", "refs/mngr") == "" and worktrees(mngr) == 0


@pytest.mark.parametrize("step", RENAME)
def test_a_killed_rename_leaves_one_name_and_a_repeat_completes_it(mngr: Cli, step: str) -> None:
    mngr(*create(mngr)).ok()
    killed(mngr, step, "rename", "foo", "bar")
    (name,) = listed(mngr)
    assert name == ("foo" if step == "name_claimed" else "bar")
    if name == "foo":
        mngr("rename", "foo", "bar").ok()
    assert set(listed(mngr)) == {"bar"}
    mngr(*create(mngr)).ok()
    assert set(listed(mngr)) == {"foo", "bar"}


def test_a_killed_rename_does_not_block_the_name_for_others(mngr: Cli) -> None:
    mngr(*create(mngr)).ok()
    killed(mngr, "name_claimed", "rename", "foo", "bar")
    mngr.create("bar")
    assert set(listed(mngr)) == {"foo", "bar"}


def test_a_killed_stop_is_listed_honestly_and_repeating_it_completes_it(mngr: Cli) -> None:
    mngr(*create(mngr)).ok()
    killed(mngr, "intent", "stop", "foo")
    assert listed(mngr) == {"foo": "RUNNING: stopping"}
    mngr("stop", "foo").ok()
    assert mngr.state("foo") == "STOPPED"


def test_a_killed_start_is_listed_honestly_and_repeating_it_completes_it(mngr: Cli) -> None:
    mngr(*create(mngr)).ok()
    mngr("stop", "foo").ok()
    killed(mngr, "launch_recorded", "start", "foo")
    assert listed(mngr) == {"foo": "LOST: start interrupted"}
    mngr("start", "foo").ok()
    assert mngr.state("foo") == "RUNNING"
