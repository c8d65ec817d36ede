"""The tutorial: Tutorials that are tests."""

from __future__ import annotations

from pathlib import Path

from mngr_e2e import E2eSession, expect

TUTORIAL = "# say hello\necho hello\n\n# say it loudly\n"
TEST = '''\
from mngr_e2e import E2eSession, expect


def test_say_hello(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # say hello
    echo hello
    """)
    result = e2e.run("echo hello", comment="say hello")
    expect(result).to_succeed()
'''


def greet(e2e: E2eSession, *, tested: bool) -> Path:
    """Return a project with a tutorial of one block and one comment."""
    folder = e2e.home / "greet"
    (folder / "tests").mkdir(parents=True)
    (folder / "tutorial.sh").write_text(TUTORIAL)
    if tested:
        (folder / "tests" / "test_tutorial.py").write_text(TEST)
    return folder


def test_a_tutorial_is_a_script_in_blocks(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # a tutorial such as this one can be tested, block by block; start with a small one
    mkdir -p ~/greet/tests
    printf '%s\n' '# say hello' 'echo hello' '' '# say it loudly' > ~/greet/tutorial.sh
    """)
    made = e2e.run(
        "mkdir -p ~/greet/tests\n"
        "printf '%s\\n' '# say hello' 'echo hello' '' '# say it loudly' > ~/greet/tutorial.sh",
        comment="a tutorial such as this one can be tested; begin with a small one",
    )
    expect(made).to_succeed()
    expect(e2e.home / "greet" / "tutorial.sh").to_have_content(TUTORIAL)


def test_check_names_the_blocks_without_a_test(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list the blocks without a test
    (cd ~/greet && mngr tutorial check) || echo "exit code $?"
    """)
    greet(e2e, tested=False)
    result = e2e.run(
        '(cd ~/greet && mngr tutorial check) || echo "exit code $?"',
        comment="list the blocks without a test",
    )
    expect(result.stdout).to_equal(
        "tutorial.sh:1: no test cites this block: say hello\nexit code 1\n"
    )
    expect(result.stderr).to_contain("1 block, 0 citations: 1 problem")


def test_scaffold_writes_plain_tests(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show which tests would be written, then write them; add further checks yourself
    (cd ~/greet && mngr tutorial scaffold --dry-run)
    (cd ~/greet && mngr tutorial scaffold)
    """)
    folder = greet(e2e, tested=False)
    path = folder / "tests" / "test_tutorial.py"
    would = e2e.run(
        "(cd ~/greet && mngr tutorial scaffold --dry-run)",
        comment="see what tests would be written, then have them written",
    )
    expect(would).to_succeed()
    expect(would.stderr).to_equal("Would add 1 test.\n")
    expect(path).not_to_exist()
    done = e2e.run("(cd ~/greet && mngr tutorial scaffold)")
    expect(done).to_succeed()
    expect(done.stdout).to_match("^tests/test_tutorial.py +test_say_hello +1$")
    expect(path).to_contain('e2e.run("echo hello", comment="say hello")')


def test_check_can_compare_the_texts_alone(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # check that the tutorial and its tests agree
    (cd ~/greet && mngr tutorial check --no-results)
    """)
    folder = greet(e2e, tested=True)
    command = "(cd ~/greet && mngr tutorial check --no-results)"
    same = e2e.run(command, comment="check that the tutorial and its tests agree")
    expect(same).to_succeed()
    expect(same.stderr).to_equal("1 block, 1 citation: no problems.\n")
    (folder / "tutorial.sh").write_text(TUTORIAL.replace("echo hello", "echo hullo"))
    differs = e2e.run(command, comment="the tutorial was changed, the test was not")
    expect(differs).to_have_exit_code(1)
    expect(differs.stdout).to_contain("has 'echo hullo' instead of 'echo hello'")


def test_check_wants_to_know_what_ran(e2e: E2eSession) -> None:
    """Tutorial block:
    # check that the tutorial and its tests agree
    (cd ~/greet && mngr tutorial check --no-results)

    Scope: without the option, until the tests have been run.
    """
    greet(e2e, tested=True)
    result = e2e.run("(cd ~/greet && mngr tutorial check)", comment="before any test has run")
    expect(result).to_have_exit_code(1)
    expect(result.stdout).to_contain("test_say_hello has not been run")


def test_claude_gets_a_slash_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # install a slash command for Claude Code that writes such tests
    (cd ~/greet && mngr tutorial install-commands)
    """)
    folder = greet(e2e, tested=True)
    path = folder / ".claude" / "commands" / "sync-tutorial-to-e2e-tests.md"
    command = "(cd ~/greet && mngr tutorial install-commands)"
    result = e2e.run(command, comment="let Claude Code know how such tests are written")
    expect(result).to_succeed()
    expect(result.stdout).to_equal(f"Wrote {path}\n")
    expect(path).to_contain("write_tutorial_block").to_contain("`tutorial.sh`")
    path.write_text("my own words\n")
    again = e2e.run(command, comment="a file of yours is left alone")
    expect(again).to_have_exit_code(1)
    expect(path).to_have_content("my own words\n")


def test_fill_shows_what_an_agent_would_be_told(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # let an agent propose commands for comments; this prints its prompt
    (cd ~/greet && mngr tutorial fill --dry-run)
    """)
    folder = greet(e2e, tested=True)
    result = e2e.run(
        "(cd ~/greet && mngr tutorial fill --dry-run)",
        comment="let an agent propose commands for comments; this prints its prompt",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match("^    # say it loudly$").not_to_match("^    # say hello$")
    expect(e2e.run("mngr list").stdout).to_equal("No agents found\n")
    expect(folder / "tutorial.sh").to_have_content(TUTORIAL)


def test_sync_has_nothing_to_do_where_all_is_tested(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # let an agent write the missing tests; here, there is nothing to do
    (cd ~/greet && mngr tutorial sync --dry-run)
    """)
    folder = greet(e2e, tested=True)
    command = "(cd ~/greet && mngr tutorial sync --dry-run)"
    result = e2e.run(command, comment="and one can write good tests for what has none")
    expect(result).to_succeed()
    expect(result.stderr).to_equal("Every block has a test.\n")
    (folder / "tests" / "test_tutorial.py").unlink()
    needed = e2e.run(command, comment="with a test to write, it shows the prompt")
    expect(needed).to_succeed()
    expect(needed.stdout).to_match("^    echo hello$").to_contain("MNGR_E2E_NOOP=1")
