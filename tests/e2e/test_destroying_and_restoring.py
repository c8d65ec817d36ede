"""The tutorial: Destroying and restoring."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import commit, destroyed, ended, git, given, names, state, work_dir


def test_work_at_risk_is_not_destroyed_unasked(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # mngr asks before it destroys work that exists nowhere else; without a terminal it refuses
    mngr exec web 'echo precious > found.txt'
    mngr destroy web --headless || echo "exit code $?"
    """)
    given(e2e, "web")
    expect(
        e2e.run(
            "mngr exec web 'echo precious > found.txt'",
            comment="mngr asks before it destroys work that exists nowhere else",
        )
    ).to_succeed()
    second = e2e.run('mngr destroy web --headless || echo "exit code $?"')
    expect(second).to_succeed()
    expect(second.stdout).to_equal("exit code 1\n")
    expect(second.stderr).to_contain("1 untracked file: found.txt")
    expect(state(e2e, "web")).to_equal("RUNNING")


def test_force_destroys(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # skip the question
    mngr destroy web --force
    """)
    given(e2e, "web")
    directory = work_dir(e2e, "web")
    (directory / "found.txt").write_text("precious\n")
    result = e2e.run("mngr destroy web --force", comment="skip the question")
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Destroyed web")
    assert names(e2e) == []
    expect(directory).not_to_exist()


def test_the_trash_can_be_listed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list the trash
    mngr restore --list
    """)
    destroyed(e2e, "web")
    result = e2e.run("mngr restore --list", comment="list the trash")
    expect(result).to_succeed()
    expect(result.stdout).to_match("^web +agent-.* mngr/web ")


def test_an_agent_comes_back_with_every_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # restore it with all files, optionally under another name
    mngr restore web --as web2
    mngr exec web2 'cat found.txt'
    """)
    destroyed(e2e, "web", "found.txt")
    expect(
        e2e.run(
            "mngr restore web --as web2",
            comment="restore it with all files, optionally under another name",
        )
    ).to_succeed()
    second = e2e.run("mngr exec web2 'cat found.txt'")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("precious\n")
    assert names(e2e) == ["web2"]


def test_the_branch_can_be_removed_as_well(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # remove the branch too
    mngr destroy web2 --force --remove-created-branch
    """)
    given(e2e, "web2")
    commit(e2e, "web2", "hello.txt", "hello")
    result = e2e.run(
        "mngr destroy web2 --force --remove-created-branch",
        comment="remove the branch too",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Destroyed web2")
    expect(git(e2e, "branch --list")).to_equal("* main")


def test_no_means_no(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # `n` on standard input keeps a running agent
    echo n | mngr destroy fix || echo "exit code $?"
    """)
    given(e2e, "fix")
    result = e2e.run(
        'echo n | mngr destroy fix || echo "exit code $?"',
        comment="`n` on standard input keeps a running agent",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 1\n")
    expect(result.stderr).to_contain("fix was kept")
    expect(state(e2e, "fix")).to_equal("RUNNING")


def test_all_that_are_done_can_be_destroyed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # rm is an alias of destroy; destroy all agents that are DONE
    mngr list --include 'state == "DONE"' --ids | mngr rm - --force --quiet
    """)
    given(e2e, "fix")
    ended(e2e, "quick")
    result = e2e.run(
        "mngr list --include 'state == \"DONE\"' --ids | mngr rm - --force --quiet",
        comment="rm is an alias of destroy; destroy all agents that are DONE",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^agent-[0-9a-f]{32}$").to_have_line_count(1)
    expect(result.stderr).to_be_empty()
    assert names(e2e) == ["fix"]


def test_a_dry_run_destroys_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show what would be destroyed
    mngr destroy fix --force --dry-run
    """)
    given(e2e, "fix")
    result = e2e.run("mngr destroy fix --force --dry-run", comment="show what would be destroyed")
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Would destroy fix.")
    expect(state(e2e, "fix")).to_equal("RUNNING")


def test_only_what_is_old_is_purged(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # delete agents that were destroyed long ago
    mngr restore --purge --older-than 30d --force
    """)
    destroyed(e2e, "web")
    result = e2e.run(
        "mngr restore --purge --older-than 30d --force",
        comment="delete agents that were destroyed long ago",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Nothing to remove.")
    expect(e2e.run("mngr restore web")).to_succeed()


def test_one_agent_can_be_purged(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # delete one agent for good
    mngr restore hello --purge --force
    """)
    destroyed(e2e, "hello")
    result = e2e.run("mngr restore hello --purge --force", comment="delete one agent for good")
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_match("Removed hello .* for good")
    expect(e2e.run("mngr restore hello")).to_have_exit_code(4)


def test_gc_leaves_what_is_needed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list leftovers, then remove them
    mngr gc --dry-run
    mngr gc
    """)
    given(e2e, "fix")
    destroyed(e2e, "web")
    first = e2e.run("mngr gc --dry-run", comment="list leftovers, then remove them")
    expect(first).to_succeed()
    second = e2e.run("mngr gc")
    expect(second).to_succeed()
    for result in (first, second):
        expect(result.stdout + result.stderr).to_contain("Nothing to remove.")
    expect(e2e.run("mngr restore web")).to_succeed()


def test_gc_can_empty_the_trash(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # empty the whole trash now
    mngr gc -S trash.keep=0s
    """)
    destroyed(e2e, "web")
    result = e2e.run("mngr gc -S trash.keep=0s", comment="empty the whole trash now")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("trash web ")
    expect(e2e.run("mngr restore web")).to_have_exit_code(4)
