"""The tutorial: Running commands beside agents."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import ended, given, state, work_dir


def test_exec_runs_in_the_work_directory(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show which files it has changed
    mngr exec fix 'git status --short'
    """)
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "more.txt").write_text("more\n")
    result = e2e.run(
        "mngr exec fix 'git status --short'", comment="show which files it has changed"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("?? more.txt\n")


def test_exec_can_do_without_a_shell(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # x is an alias of exec; everything after -- is run as is, without a shell
    mngr x fix -- echo 'no $SHELL here'
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr x fix -- echo 'no $SHELL here'",
        comment=("x is an alias of exec; everything after -- is run as is, without a shell"),
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("no $SHELL here\n")


def test_exec_exits_with_the_code_of_the_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # the exit code is the command's own
    mngr exec fix 'exit 7' || echo "exit code $?"
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr exec fix 'exit 7' || echo \"exit code $?\"",
        comment="the exit code is the command's own",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 7\n")


def test_standard_input_is_handed_over(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # pass standard input
    echo 'print(6 * 7)' | mngr exec -i fix python3
    """)
    given(e2e, "fix")
    result = e2e.run(
        "echo 'print(6 * 7)' | mngr exec -i fix python3", comment="pass standard input"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("42\n")


def test_exec_can_run_below_the_work_directory(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run in a subdirectory
    mngr exec fix 'mkdir -p docs'
    mngr exec fix --cwd docs 'basename "$PWD"'
    """)
    given(e2e, "fix")
    expect(e2e.run("mngr exec fix 'mkdir -p docs'", comment="run in a subdirectory")).to_succeed()
    second = e2e.run("mngr exec fix --cwd docs 'basename \"$PWD\"'")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("docs\n")


def test_exec_can_be_limited_in_time(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # limit the time
    mngr exec fix --timeout 1s 'sleep 60' || echo "exit code $?"
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr exec fix --timeout 1s 'sleep 60' || echo \"exit code $?\"",
        comment="limit the time",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 124\n")
    expect(result.stderr).to_contain("did not finish within 1 s")
    expect(state(e2e, "fix")).to_equal("RUNNING")


def test_exec_can_stream(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print output as it is produced
    mngr exec fix --stream 'for n in 1 2 3; do echo "step $n"; done'
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr exec fix --stream 'for n in 1 2 3; do echo \"step $n\"; done'",
        comment="print output as it is produced",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("step 1\nstep 2\nstep 3\n")


def test_exec_in_many_places_is_one_document(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run on several agents, and print one JSON document
    mngr exec fix server 'git rev-parse --abbrev-ref HEAD' --format json
    """)
    given(e2e, "fix")
    given(e2e, "server")
    result = e2e.run(
        "mngr exec fix server 'git rev-parse --abbrev-ref HEAD' --format json",
        comment="run on several agents, and print one JSON document",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_include_json({"total_executed": 2, "total_failed": 0})
    expect(result.stdout).to_contain("mngr/fix")
    expect(result.stdout).to_contain("mngr/server")


def test_exec_runs_in_all_places_that_a_list_names(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run on all agents in a list
    mngr list --running --format '{name}' | mngr exec - 'git log -1 --format=%s'
    """)
    given(e2e, "fix")
    given(e2e, "server")
    ended(e2e, "quick")
    result = e2e.run(
        "mngr list --running --format '{name}' | mngr exec - 'git log -1 --format=%s'",
        comment="run on all agents in a list",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("fix: Begin")
    expect(result.stdout).to_contain("server: Begin")
    expect(result.stdout).not_to_contain("quick")


def test_exec_can_go_on_until_one_fails(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run on one agent after the other, until one fails
    mngr exec fix server --on-error abort 'test -e hello.txt' || echo "exit code $?"
    """)
    given(e2e, "fix")
    given(e2e, "server")
    result = e2e.run(
        ("mngr exec fix server --on-error abort 'test -e hello.txt' || echo \"exit code $?\""),
        comment="run on one agent after the other, until one fails",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match("exit code [13]")
    (work_dir(e2e, "fix") / "hello.txt").write_text("hello\n")
    (work_dir(e2e, "server") / "hello.txt").write_text("hello\n")
    again = e2e.run("mngr exec fix server --on-error abort 'test -e hello.txt'")
    expect(again).to_succeed()


def test_exec_can_start_the_agent_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # the agent need not be running, but it can be started first
    mngr stop server
    mngr exec server --start 'echo "$MNGR_AGENT_NAME is up"'
    """)
    given(e2e, "server")
    expect(
        e2e.run(
            "mngr stop server",
            comment="the agent need not be running, but it can be started first",
        )
    ).to_succeed()
    second = e2e.run("mngr exec server --start 'echo \"$MNGR_AGENT_NAME is up\"'")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("server is up\n")
    expect(state(e2e, "server")).to_equal("RUNNING")
