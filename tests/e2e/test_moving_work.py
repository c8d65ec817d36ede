"""The tutorial: Moving work."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import commit, git, given, work_dir


def test_diff_tells_commits_from_the_rest(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show what it has committed, and what it has not
    mngr exec fix 'echo one > one.txt; git add one.txt; git commit -qm "Add one"'
    mngr exec fix 'echo two > two.txt'
    mngr diff fix --commits
    mngr diff fix --uncommitted
    """)
    given(e2e, "fix")
    expect(
        e2e.run(
            ("mngr exec fix 'echo one > one.txt; git add one.txt; git commit -qm \"Add one\"'"),
            comment="show what it has committed, and what it has not",
        )
    ).to_succeed()
    expect(e2e.run("mngr exec fix 'echo two > two.txt'")).to_succeed()
    third = e2e.run("mngr diff fix --commits")
    expect(third).to_succeed()
    fourth = e2e.run("mngr diff fix --uncommitted")
    expect(fourth).to_succeed()
    expect(third.stdout).to_contain("Add one")
    expect(fourth.stdout).to_contain("b/two.txt")
    expect(fourth.stdout).not_to_contain("one.txt")


def test_diff_can_be_short_or_of_some_files(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # summarise the changes, or limit them to some files
    mngr diff fix --stat
    mngr diff fix -- one.txt
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "one.txt", "one")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    first = e2e.run(
        "mngr diff fix --stat", comment="summarise the changes, or limit them to some files"
    )
    expect(first).to_succeed()
    second = e2e.run("mngr diff fix -- one.txt")
    expect(second).to_succeed()
    expect(first.stdout).to_contain("2 files changed, 2 insertions(+)")
    expect(second.stdout).to_contain("+one")
    expect(second.stdout).not_to_contain("two")


def test_a_diff_is_a_patch(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # the output is a patch; check that it applies here
    mngr diff fix -- two.txt | git apply --check
    """)
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    expect(
        e2e.run(
            "mngr diff fix -- two.txt | git apply --check",
            comment="the output is a patch; check that it applies here",
        )
    ).to_succeed()
    applied = e2e.run("mngr diff fix -- two.txt | git apply", comment="really")
    expect(applied).to_succeed()
    expect(e2e.work / "two.txt").to_have_content("two\n")


def test_pull_fetches_commits(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # fetch the commits of an agent that works on a clone
    mngr exec mirrored 'echo far > far.txt; git add far.txt; git commit -qm "From afar"'
    mngr pull mirrored
    git log -1 --format=%s mngr/mirrored
    """)
    given(e2e, "mirrored", "--transfer mirror")
    expect(
        e2e.run(
            (
                "mngr exec mirrored 'echo far > far.txt; git add far.txt; git commit -qm \"From "
                "afar\"'"
            ),
            comment="fetch the commits of an agent that works on a clone",
        )
    ).to_succeed()
    expect(e2e.run("mngr pull mirrored")).to_succeed()
    third = e2e.run("git log -1 --format=%s mngr/mirrored")
    expect(third).to_succeed()
    expect(third.stdout).to_equal("From afar\n")
    expect(git(e2e, "log -1 --format=%s")).to_equal("Begin")


def test_pull_can_fetch_into_another_branch(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # fetch them under another name
    mngr pull mirrored --branch review/mirrored
    """)
    given(e2e, "mirrored", "--transfer mirror")
    commit(e2e, "mirrored", "far.txt", "far")
    expect(
        e2e.run(
            "mngr pull mirrored --branch review/mirrored", comment="fetch them under another name"
        )
    ).to_succeed()
    expect(git(e2e, "log -1 --format=%s review/mirrored")).to_equal("Add far.txt")
    expect(git(e2e, "branch --list mngr/mirrored")).to_be_empty()


def test_pull_copies_a_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # copy a file from its work directory, committed or not
    mngr pull fix two.txt ~/two.txt
    cat ~/two.txt
    """)
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    expect(
        e2e.run(
            "mngr pull fix two.txt ~/two.txt",
            comment=("copy a file from its work directory, committed or not"),
        )
    ).to_succeed()
    second = e2e.run("cat ~/two.txt")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("two\n")


def test_pull_does_not_overwrite_unasked(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # files that differ are replaced only with --force
    echo mine > ~/two.txt
    mngr pull fix two.txt ~/two.txt || echo "exit code $?"
    mngr pull fix two.txt ~/two.txt --force
    """)
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "two.txt").write_text("two\n")
    expect(
        e2e.run(
            "echo mine > ~/two.txt",
            comment="files that differ are replaced only with --force",
        )
    ).to_succeed()
    second = e2e.run('mngr pull fix two.txt ~/two.txt || echo "exit code $?"')
    expect(second).to_succeed()
    expect(e2e.run("mngr pull fix two.txt ~/two.txt --force")).to_succeed()
    expect(second.stdout).to_equal("exit code 1\n")
    expect(second.stderr).to_contain(f"these files in {e2e.home} differ: two.txt")
    expect(e2e.home / "two.txt").to_have_content("two\n")


def test_push_copies_a_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # copy a file to its work directory
    mngr push bold ~/note.txt note.txt
    mngr exec bold 'cat note.txt'
    """)
    given(e2e, "bold")
    (e2e.home / "note.txt").write_text("a pound of flour\n")
    expect(
        e2e.run("mngr push bold ~/note.txt note.txt", comment="copy a file to its work directory")
    ).to_succeed()
    second = e2e.run("mngr exec bold 'cat note.txt'")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("a pound of flour\n")


def test_push_brings_commits(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # push your new commits: only a fast-forward, so its work cannot be lost
    git commit -q --allow-empty -m 'Progress'
    mngr push patch
    """)
    given(e2e, "patch", "--branch :hotfix")
    expect(
        e2e.run(
            "git commit -q --allow-empty -m 'Progress'",
            comment=(
                "give it what you committed since: only a fast-forward, so nothing of its can be "
                "lost"
            ),
        )
    ).to_succeed()
    second = e2e.run("mngr push patch")
    expect(second).to_succeed()
    expect(second.stdout + second.stderr).to_contain("Pushed 1 commit to patch")
    expect(git(e2e, "log -1 --format=%s hotfix")).to_equal("Progress")
    commit(e2e, "patch", "own.txt", "own")
    git(e2e, "commit -q --allow-empty -m Diverged")
    refused = e2e.run("mngr push patch", comment="it has a commit of its own now")
    expect(refused).to_have_exit_code(1)
    expect(git(e2e, "log -1 --format=%s hotfix")).to_equal("Add own.txt")
