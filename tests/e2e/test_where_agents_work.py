"""The tutorial: Where agents work."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import git, given, names, show, work_dir


def test_uncommitted_changes_are_refused(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # mngr refuses to create an agent without your uncommitted changes, and lists them
    echo draft > draft.txt
    mngr create early --no-connect -- true || echo "exit code $?"
    """)
    expect(
        e2e.run(
            "echo draft > draft.txt",
            comment=(
                "mngr refuses to create an agent without your uncommitted changes, and lists them"
            ),
        )
    ).to_succeed()
    second = e2e.run('mngr create early --no-connect -- true || echo "exit code $?"')
    expect(second).to_succeed()
    expect(second.stdout).to_equal("exit code 1\n")
    expect(second.stderr).to_contain("?? draft.txt")
    assert names(e2e) == []


def test_uncommitted_changes_can_travel(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # copy them too
    mngr create dirty --foreground --include-dirty -- cat draft.txt
    rm draft.txt
    """)
    (e2e.work / "draft.txt").write_text("draft\n")
    first = e2e.run(
        "mngr create dirty --foreground --include-dirty -- cat draft.txt",
        comment="copy them too",
    )
    expect(first).to_succeed()
    expect(e2e.run("rm draft.txt")).to_succeed()
    expect(first.stdout).to_equal("draft\n")
    expect(work_dir(e2e, "dirty") / "draft.txt").to_exist()


def test_a_copy_is_a_repository_of_its_own(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # work on a copy instead of a worktree
    mngr create copied --foreground --transfer copy -- git status --short --branch
    """)
    result = e2e.run(
        ("mngr create copied --foreground --transfer copy -- git status --short --branch"),
        comment="work on a copy instead of a worktree",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_start_with("## main")
    expect(git(e2e, "worktree list")).to_have_line_count(1)
    assert (work_dir(e2e, "copied") / ".git").is_dir()


def test_a_mirrored_agent_works_on_a_clone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # work on a clone that shares objects with one mirror per repository
    mngr create mirrored --no-connect --transfer mirror -- sleep 1000
    mngr exec mirrored 'git remote; git branch --show-current'
    """)
    expect(
        e2e.run(
            "mngr create mirrored --no-connect --transfer mirror -- sleep 1000",
            comment="work on a clone that shares objects with one mirror per repository",
        )
    ).to_succeed()
    second = e2e.run("mngr exec mirrored 'git remote; git branch --show-current'")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("origin\nmngr/mirrored\n")
    expect(git(e2e, "branch --list")).not_to_contain("mirrored")


def test_an_agent_can_work_in_place(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # work in place, in your own directory
    mngr create inplace --foreground --transfer none -- pwd
    """)
    result = e2e.run(
        "mngr create inplace --foreground --transfer none -- pwd",
        comment="work in place, in your own directory",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal(f"{e2e.work.resolve()}\n")
    expect(git(e2e, "branch --list")).to_equal("* main")


def test_the_branch_has_the_chosen_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # choose the name of its branch; * is the agent's name
    mngr create bold --no-connect --branch ':try/*' -- sleep 1000
    git branch --list 'try/*'
    """)
    expect(
        e2e.run(
            "mngr create bold --no-connect --branch ':try/*' -- sleep 1000",
            comment="choose the name of its branch; * is the agent's name",
        )
    ).to_succeed()
    second = e2e.run("git branch --list 'try/*'")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("try/bold")
    expect(show(e2e, "bold")["initial_branch"]).to_equal("try/bold")


def test_the_words_of_other_tools_are_understood(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # options known from other tools: --source is --from, --include-unclean is --include-dirty
    mngr create --name scout --source . --include-unclean --no-connect -- sleep 1000
    """)
    (e2e.work / "draft.txt").write_text("draft\n")
    result = e2e.run(
        "mngr create --name scout --source . --include-unclean --no-connect -- sleep 1000",
        comment="options known from other tools",
    )
    expect(result).to_succeed()
    expect(e2e.run("mngr exec scout 'cat draft.txt'").stdout).to_equal("draft\n")


def test_an_agent_can_start_at_another_commit(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start at another commit
    git tag v1
    mngr create patch --no-connect --branch v1:hotfix -- sleep 1000
    """)
    expect(e2e.run("git tag v1", comment="start at another commit")).to_succeed()
    expect(e2e.run("mngr create patch --no-connect --branch v1:hotfix -- sleep 1000")).to_succeed()
    expect(e2e.run("mngr exec patch 'git log -1 --format=%D'").stdout).to_contain("tag: v1")
    expect(show(e2e, "patch")["initial_branch"]).to_equal("hotfix")


def test_an_agent_can_work_on_an_existing_branch(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # work on a branch that exists
    git branch existing
    mngr create resume --foreground --branch existing -- git branch --show-current
    """)
    expect(e2e.run("git branch existing", comment="work on a branch that exists")).to_succeed()
    second = e2e.run(
        "mngr create resume --foreground --branch existing -- git branch --show-current"
    )
    expect(second).to_succeed()
    expect(second.stdout).to_equal("existing\n")


def test_an_agent_can_start_where_another_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start from the work of another agent, with its uncommitted changes
    mngr exec fix 'echo more > more.txt'
    mngr create twin --foreground --from fix -- cat more.txt
    """)
    given(e2e, "fix")
    expect(
        e2e.run(
            "mngr exec fix 'echo more > more.txt'",
            comment="start from the work of another agent, with its uncommitted changes",
        )
    ).to_succeed()
    second = e2e.run("mngr create twin --foreground --from fix -- cat more.txt")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("more\n")
    expect(work_dir(e2e, "fix") / "more.txt").to_exist()


def test_a_plain_directory_is_copied(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start from a directory that is not a repository: the agent works on a copy
    mkdir -p ~/plain
    echo text > ~/plain/file.txt
    mngr create outside --foreground --from ~/plain -- ls
    """)
    expect(
        e2e.run(
            "mkdir -p ~/plain",
            comment=("start from a directory that is not a repository: the agent works on a copy"),
        )
    ).to_succeed()
    expect(e2e.run("echo text > ~/plain/file.txt")).to_succeed()
    third = e2e.run("mngr create outside --foreground --from ~/plain -- ls")
    expect(third).to_succeed()
    expect(third.stdout).to_equal("file.txt\n")
    assert work_dir(e2e, "outside") != e2e.home / "plain"


def test_an_agent_can_start_from_a_url(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start from a git URL
    git clone -q --bare . ~/origin.git
    mngr create fetched --foreground --from "file://$HOME/origin.git" -- git log -1 --format=%s
    """)
    expect(
        e2e.run("git clone -q --bare . ~/origin.git", comment="start from a git URL")
    ).to_succeed()
    second = e2e.run(
        'mngr create fetched --foreground --from "file://$HOME/origin.git" -- git log -1 '
        "--format=%s"
    )
    expect(second).to_succeed()
    expect(second.stdout).to_equal("Begin\n")


def test_the_environment_knows_the_work_directory(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print its work directory
    mngr exec fix 'echo "$MNGR_AGENT_NAME works in $MNGR_AGENT_WORK_DIR"'
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr exec fix 'echo \"$MNGR_AGENT_NAME works in $MNGR_AGENT_WORK_DIR\"'",
        comment="print its work directory",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal(f"fix works in {work_dir(e2e, 'fix')}\n")
