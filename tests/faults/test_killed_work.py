"""kill -9 at every step of snapshots, merges, clones and migrations: nothing lost, repeatable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_clone import closed, hosts, work_of
from tests.cli.test_merge import head, settled, subjects, worker
from tests.cli.test_snapshot import busy, tree
from tests.faults.test_killed import killed
from tests.support.cli import Cli

SNAPSHOT = ("snapshot_committed", "snapshot_kept")
RESTORE_SNAPSHOT = ("present_saved", "files_restored")
MERGE = ("merge_noted", "merged", "merge_settled")
SQUASH = ("merge_noted", "squash_staged", "merged", "merge_settled")
FAILING = ("merge_noted", "merged", "check_failed", "merge_settled")
MIGRATE = ("original_stopped", "copy_made")
WORK_STEPS = {*SNAPSHOT, *RESTORE_SNAPSHOT, *SQUASH, *FAILING, *MIGRATE}


@pytest.mark.parametrize("step", SNAPSHOT)
def test_a_killed_snapshot_is_there_or_not_and_can_be_repeated(mngr: Cli, step: str) -> None:
    work = busy(mngr)
    then = tree(work)
    killed(mngr, step, "snapshot", "create", "foo", "--name", "x")
    again = mngr("snapshot", "create", "foo", "--name", "x")
    if step == "snapshot_kept":
        again.fails(1, "already has a snapshot 'x'")
    else:
        again.ok()
    assert tree(work) == then
    (work / "README").write_text("other")
    mngr("snapshot", "restore", "foo", "x").ok()
    assert tree(work) == then


@pytest.mark.parametrize("step", [*SNAPSHOT, *RESTORE_SNAPSHOT])
def test_a_killed_restore_of_a_snapshot_loses_nothing_and_a_repeat_completes_it(
    mngr: Cli, step: str
) -> None:
    work = busy(mngr)
    then = tree(work)
    mngr("snapshot", "create", "foo", "--name", "then").ok()
    (work / "README").write_text("precious\n")
    (work / "new").write_text("precious too\n")
    now = tree(work)
    killed(mngr, step, "snapshot", "restore", "foo", "then")
    assert tree(work) == (then if step == "files_restored" else now)
    mngr("snapshot", "restore", "foo", "then").ok()
    assert tree(work) == then
    mngr("snapshot", "restore", "foo", "2").ok()
    assert tree(work) == now


@pytest.mark.parametrize("step", MERGE)
def test_a_killed_merge_is_checked_by_the_repeat(mngr: Cli, step: str) -> None:
    worker(mngr, "foo", a="1")
    mngr.write("mine", "x")
    mngr.commit("mine")
    ran = mngr.base / "ran"
    words = ("merge", "foo", "--check", f"echo x >> {ran}")
    killed(mngr, step, *words)
    checked = ran.exists()
    assert checked is (step == "merge_settled")
    mngr(*words).ok()
    assert ran.read_text() == "x\n"
    assert subjects(mngr).count("Merge agent foo (mngr/foo)") == 1 and settled(mngr)


@pytest.mark.parametrize("fast_forward", [True, False])
@pytest.mark.parametrize("step", FAILING)
def test_a_killed_merge_whose_check_fails_is_taken_back_by_the_repeat(
    mngr: Cli, step: str, fast_forward: bool
) -> None:
    worker(mngr, "foo", a="1")
    if not fast_forward:
        mngr.write("mine", "x")
        mngr.commit("mine")
    (mngr.repo / "README").write_text("mine, unsaved\n")
    before = head(mngr)
    words = ("merge", "foo", "--check", "false")
    killed(mngr, step, *words)
    assert mngr(*words).code == 1
    assert head(mngr) == before and settled(mngr)
    assert mngr.git("status", "--porcelain") == "M README"


@pytest.mark.parametrize("step", SQUASH)
def test_a_killed_squash_is_completed_by_the_repeat(mngr: Cli, step: str) -> None:
    worker(mngr, "foo", a="1")
    before = head(mngr)
    words = ("merge", "foo", "--squash", "--check", "true")
    killed(mngr, step, *words)
    if step != "merge_settled":
        mngr(*words).ok()
    assert mngr.git("rev-parse", "HEAD^") == before
    assert subjects(mngr)[0] == "Squash agent foo (mngr/foo)" and settled(mngr)
    assert mngr.git("status", "--porcelain") == ""


def test_commits_made_after_a_killed_merge_are_never_taken_back(mngr: Cli) -> None:
    worker(mngr, "foo", a="1")
    killed(mngr, "merge_noted", "merge", "foo", "--check", "false")
    mngr.write("mine", "x")
    mine = mngr.commit("mine")
    assert mngr("merge", "foo", "--check", "false").code == 1
    assert head(mngr) == mine and settled(mngr)
    killed(mngr, "merged", "merge", "foo", "--check", "false")
    mngr.write("more", "x")
    more = mngr.commit("more")
    mngr("merge", "foo", "--check", "false").ok()
    assert head(mngr) == more


CREATE = ("claimed", "recorded", "work_dir", "files", "launched")


@pytest.mark.parametrize("step", CREATE)
def test_a_killed_clone_leaves_the_original_alone_and_can_be_repeated(mngr: Cli, step: str) -> None:
    work = busy(mngr)
    then = tree(work)
    killed(mngr, step, "clone", "foo", "bar")
    again = mngr("clone", "foo", "bar")
    if step == "launched":
        again.fails(1, "taken")
    else:
        again.ok()
    assert tree(work) == then and work_of(mngr.work_dir("bar")) == work_of(work)
    assert mngr.state("foo") == mngr.state("bar") == "RUNNING"


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Cli]:
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__COMMANDS__CREATE__PROVIDER"] = "local"
    yield cli
    closed(cli)


DESTROY = (
    *("removal_recorded", "processes_ended", "noted", "work_moved", "repaired"),
    "state_moved",
)


# A clone that is killed is proven above, a destroy in test_killed: the others take half a minute.
SHORT = (*MIGRATE, "work_dir", "work_moved")
LONG = [
    pytest.param(step, marks=pytest.mark.soak) for step in (*CREATE, *DESTROY) if step not in SHORT
]


@pytest.mark.parametrize("step", [*SHORT, *LONG])
def test_a_killed_migration_loses_nothing_and_a_repeat_completes_it(both: Cli, step: str) -> None:
    work = busy(both)
    then, original = work_of(work), both.agent("foo")["id"]
    killed(both, step, "migrate", "foo", "bare")
    both("migrate", "foo", "bare").ok()
    assert hosts(both) == {"foo": "bare"}
    assert work_of(both.work_dir("foo")) == then
    assert both.state("foo") == "RUNNING"
    both("restore", original, "--as", "back").ok()
    assert work_of(both.work_dir("back")) == then


def test_work_done_after_a_killed_migration_is_not_destroyed(both: Cli) -> None:
    work = busy(both)
    killed(both, "copy_made", "migrate", "foo", "bare")
    (work / "later").write_text("precious")
    both("migrate", "foo", "bare").fails(1, "foo changed after it was copied to bare")
    assert (work / "later").read_text() == "precious"
