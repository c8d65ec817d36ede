"""The tutorial: First steps."""

from __future__ import annotations

from pathlib import Path

from mngr_e2e import E2eSession, expect
from tests.e2e.world import commit, git, given, show, state, work_dir


def test_the_mngr_that_runs_here_is_the_one_beside_these_tests(e2e: E2eSession) -> None:
    """Not the one that is installed, perhaps from another checkout."""
    result = e2e.run('head -n 3 "$(command -v mngr)"')
    expect(result.stdout).to_contain(str(Path(__file__).parents[2] / "src"))
    expect(e2e.run("mngr --version")).to_succeed()


def test_the_version_is_printed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the version of mngr
    mngr --version
    """)
    result = e2e.run("mngr --version", comment="print the version of mngr")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"\Amngr \d+\.\d+")


def test_help_names_every_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # see every command, with one line about each
    mngr help
    """)
    result = e2e.run("mngr help", comment="see every command, with one line about each")
    expect(result).to_succeed()
    for command in ("create", "list", "snapshot", "doctor"):
        expect(result.stdout).to_match(rf"^  {command}\b")


def test_help_of_a_command_is_its_manual(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # read the manual of one command
    mngr help create
    """)
    result = e2e.run("mngr help create", comment="read the manual of one command")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("mngr-create - create an agent")
    expect(result.stdout).to_contain("SEE ALSO")


def test_help_option_prints_the_same_manual(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # every command shows its manual with --help
    mngr list --help
    """)
    result = e2e.run("mngr list --help", comment="every command shows its manual with --help")
    expect(result).to_succeed()
    manual = e2e.run("mngr help list", comment="the other way to ask")
    expect(result.stdout).to_start_with("NAME\n    mngr-list")
    expect(manual.stdout).to_equal(result.stdout)


def test_a_mistyped_command_is_answered_with_the_nearest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # if you mistype a command, mngr suggests the nearest one
    mngr crate || echo "exit code $?"
    """)
    result = e2e.run(
        'mngr crate || echo "exit code $?"',
        comment="if you mistype a command, mngr suggests the nearest one",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 2\n")
    expect(result.stderr).to_contain("did you mean 'create'?")


def test_doctor_finds_the_programs_it_needs(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # check that this machine has everything mngr requires
    mngr doctor
    """)
    result = e2e.run("mngr doctor", comment="check that this machine has everything mngr requires")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^git +ok ")
    expect(result.stdout).to_match(r"^tmux +ok ")


def test_the_first_agent_runs_on_a_branch_of_its_own(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start your first agent: it gets its own branch, directory and terminal
    mngr create fix --no-connect -- sleep 1000
    """)
    result = e2e.run(
        "mngr create fix --no-connect -- sleep 1000",
        comment=("start your first agent: it gets its own branch, directory and terminal"),
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Created fix; it is RUNNING")
    expect(state(e2e, "fix")).to_equal("RUNNING")
    expect(git(e2e, "branch --list mngr/fix")).to_contain("mngr/fix")
    expect(work_dir(e2e, "fix") / "README.md").to_have_content("hello\n")


def test_list_shows_each_agent_and_its_state(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list all agents
    mngr list
    """)
    given(e2e, "fix")
    result = e2e.run("mngr list", comment="list all agents")
    expect(result).to_succeed()
    expect(result.stdout).to_have_line_count(2)
    expect(result.stdout).to_match(r"^fix +RUNNING +\d+s +sleep 1000 ")


def test_an_agent_works_in_a_worktree(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # it works in a git worktree, on the branch mngr/fix; your own files are left alone
    git branch --list 'mngr/*'
    git worktree list
    """)
    given(e2e, "fix")
    first = e2e.run(
        "git branch --list 'mngr/*'",
        comment=(
            "it works in a git worktree, on the branch mngr/fix; your own files are left alone"
        ),
    )
    expect(first).to_succeed()
    second = e2e.run("git worktree list")
    expect(second).to_succeed()
    expect(first.stdout).to_contain("mngr/fix")
    expect(second.stdout).to_contain("[mngr/fix]")
    expect(git(e2e, "status --short --branch")).to_equal("## main")


def test_a_commit_of_the_agent_is_in_the_repository(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run something in its directory, and find the agent's commit in your repository
    mngr exec fix 'echo hello > hello.txt; git add hello.txt; git commit -qm "Say hello"'
    git log -1 --format=%s mngr/fix
    """)
    given(e2e, "fix")
    expect(
        e2e.run(
            (
                "mngr exec fix 'echo hello > hello.txt; git add hello.txt; git commit -qm \"Say "
                "hello\"'"
            ),
            comment=(
                "run something in its directory, and find the agent's commit in your repository"
            ),
        )
    ).to_succeed()
    second = e2e.run("git log -1 --format=%s mngr/fix")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("Say hello\n")
    expect(git(e2e, "log -1 --format=%s")).to_equal("Begin")


def test_diff_shows_what_the_agent_did(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show the changes it has made
    mngr diff fix
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "hello.txt", "hello")
    result = e2e.run("mngr diff fix", comment="show the changes it has made")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("+++ b/hello.txt")
    expect(result.stdout).to_contain("+hello")


def test_a_stopped_agent_starts_again_in_the_same_place(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # stop it and keep its work; start it again in the same directory
    mngr stop fix
    mngr start fix
    """)
    given(e2e, "fix")
    before = show(e2e, "fix")
    first = e2e.run(
        "mngr stop fix",
        comment=("stop it and keep its work; start it again in the same directory"),
    )
    expect(first).to_succeed()
    expect(e2e.run("mngr start fix")).to_succeed()
    after = show(e2e, "fix")
    expect(first.stdout + first.stderr).to_contain("Stopped fix.")
    assert after["state"] == "RUNNING"
    assert after["work_dir"] == before["work_dir"]
    assert after["pid"] != before["pid"]


def test_merge_brings_the_commit_here(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # merge its commits
    mngr merge fix
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "hello.txt", "hello")
    expect(e2e.run("mngr merge fix", comment="merge its commits")).to_succeed()
    expect(e2e.work / "hello.txt").to_have_content("hello\n")
    expect(git(e2e, "log -1 --format=%s")).to_equal("Add hello.txt")


def test_what_is_destroyed_comes_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # destroy it; restore brings it back, stopped
    mngr destroy fix
    mngr restore fix
    mngr start fix
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "hello.txt", "hello")
    first = e2e.run(
        "mngr destroy fix",
        comment="destroy it; restore brings it back, stopped",
    )
    expect(first).to_succeed()
    second = e2e.run("mngr restore fix")
    expect(second).to_succeed()
    expect(e2e.run("mngr start fix")).to_succeed()
    expect(first.stdout + first.stderr).to_contain("undo: mngr restore fix")
    expect(second.stdout + second.stderr).to_contain("it is STOPPED")
    expect(state(e2e, "fix")).to_equal("RUNNING")
    expect(work_dir(e2e, "fix") / "hello.txt").to_have_content("hello\n")
