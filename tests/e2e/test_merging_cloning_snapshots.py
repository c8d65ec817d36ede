"""The tutorial: Merging, cloning, snapshots."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import commit, git, given, names, show, state, work_dir


def test_a_merge_can_be_tried_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show what would be merged, then merge
    mngr merge fix --dry-run
    mngr merge fix
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "one.txt", "one")
    first = e2e.run("mngr merge fix --dry-run", comment="show what would be merged, then merge")
    expect(first).to_succeed()
    expect(e2e.run("mngr merge fix")).to_succeed()
    expect(first.stdout + first.stderr).to_contain("Would merge 1 commit")
    expect(e2e.work / "one.txt").to_have_content("one\n")


def test_a_merge_can_be_one_checked_commit(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # merge it as one commit, and only if a check passes
    mngr merge mirrored --squash --check 'test -e far.txt'
    """)
    given(e2e, "mirrored", "--transfer mirror")
    commit(e2e, "mirrored", "near.txt", "near")
    commit(e2e, "mirrored", "far.txt", "far")
    result = e2e.run(
        "mngr merge mirrored --squash --check 'test -e far.txt'",
        comment="merge it as one commit, and only if a check passes",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Merged 2 commits of mirrored")
    expect(git(e2e, "rev-list --count HEAD")).to_equal("2")
    expect(e2e.work / "far.txt").to_exist()


def test_a_failed_check_takes_the_merge_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # if the check fails, the merge is undone
    mngr exec bold 'echo bad > bad.txt; git add bad.txt; git commit -qm "Add bad"'
    mngr merge bold --check 'test ! -e bad.txt' || echo "exit code $?"
    """)
    given(e2e, "bold")
    before = git(e2e, "rev-parse HEAD")
    expect(
        e2e.run(
            ("mngr exec bold 'echo bad > bad.txt; git add bad.txt; git commit -qm \"Add bad\"'"),
            comment="if the check fails, the merge is undone",
        )
    ).to_succeed()
    second = e2e.run("mngr merge bold --check 'test ! -e bad.txt' || echo \"exit code $?\"")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("exit code 1\n")
    expect(git(e2e, "rev-parse HEAD")).to_equal(before)
    expect(e2e.work / "bad.txt").not_to_exist()


def test_a_clone_has_the_same_work(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # create another agent with the same program and the same work
    mngr clone fix
    mngr clone fix other --label attempt=2 -- sleep 500
    """)
    given(e2e, "fix", "--label team=core")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    expect(
        e2e.run(
            "mngr clone fix", comment="create another agent with the same program and the same work"
        )
    ).to_succeed()
    expect(e2e.run("mngr clone fix other --label attempt=2 -- sleep 500")).to_succeed()
    assert names(e2e) == ["fix", "fix-2", "other"]
    expect(work_dir(e2e, "fix-2") / "two.txt").to_have_content("two\n")
    expect(show(e2e, "other")).to_include_json(
        {"labels": {"team": "core", "attempt": "2"}, "command": "sleep 500"}
    )


def test_a_snapshot_disturbs_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # take a snapshot of its work directory
    mngr snapshot create fix --name before
    """)
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    result = e2e.run(
        "mngr snapshot create fix --name before", comment="take a snapshot of its work directory"
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Snapshot fix/before")
    expect(e2e.run("mngr exec fix 'git status --short'").stdout).to_equal("?? two.txt\n")


def test_a_snapshot_brings_the_work_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # change it, and restore the snapshot; the current state is saved as another snapshot first
    mngr exec fix 'rm two.txt; echo oops > one.txt'
    mngr snapshot restore fix before
    mngr exec fix 'cat one.txt two.txt'
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "one.txt", "one")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    expect(e2e.run("mngr snapshot create fix --name before")).to_succeed()
    expect(
        e2e.run(
            "mngr exec fix 'rm two.txt; echo oops > one.txt'",
            comment="change it, and restore the snapshot",
        )
    ).to_succeed()
    second = e2e.run("mngr snapshot restore fix before")
    expect(second).to_succeed()
    third = e2e.run("mngr exec fix 'cat one.txt two.txt'")
    expect(third).to_succeed()
    expect(second.stdout + second.stderr).to_contain("The current state was saved as fix/2.")
    expect(third.stdout).to_equal("one\ntwo\n")


def test_snapshots_can_be_listed_and_forgotten(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list its snapshots, and delete one
    mngr snapshot list fix
    mngr snap destroy fix 2
    """)
    given(e2e, "fix")
    for name in ("before", "after"):
        expect(e2e.run(f"mngr snapshot create fix --name {name}")).to_succeed()
    first = e2e.run("mngr snapshot list fix", comment="list its snapshots, and delete one")
    expect(first).to_succeed()
    expect(e2e.run("mngr snap destroy fix 2")).to_succeed()
    expect(first.stdout).to_match("^fix +2 +after ")
    expect(first.stdout).to_match("^fix +1 +before ")
    left = e2e.run("mngr snapshot list fix --format '{name}'")
    expect(left.stdout).to_equal("before\n")


def test_an_agent_can_start_from_a_snapshot(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # create an agent from a snapshot
    mngr create retry --foreground --from fix/before -- cat two.txt
    """)
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    expect(e2e.run("mngr snapshot create fix --name before")).to_succeed()
    (work_dir(e2e, "fix") / "two.txt").write_text("three\n")
    result = e2e.run(
        "mngr create retry --foreground --from fix/before -- cat two.txt",
        comment="create an agent from a snapshot",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("two\n")


def test_migrating_to_the_same_host_is_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # move it to another host; here there is only one, so this fails
    mngr migrate fix localhost || echo "exit code $?"
    """)
    given(e2e, "fix")
    result = e2e.run(
        'mngr migrate fix localhost || echo "exit code $?"',
        comment="move it to another host; here there is only one, so this fails",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 2\n")
    expect(result.stdout + result.stderr).to_contain("fix is already on localhost")
    expect(state(e2e, "fix")).to_equal("RUNNING")
