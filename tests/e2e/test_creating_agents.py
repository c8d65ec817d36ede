"""The tutorial: Creating agents."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import git, given, names, show, state


def test_a_name_is_made_up(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # without a name, mngr generates one
    mngr create --no-connect -- sleep 1000
    """)
    expect(
        e2e.run(
            "mngr create --no-connect -- sleep 1000", comment="without a name, mngr generates one"
        )
    ).to_succeed()
    (name,) = names(e2e)
    expect(name).to_match(r"^[a-z]+-[a-z]+-\d+$")
    expect(git(e2e, "branch --list")).to_contain(f"mngr/{name}")


def test_a_shell_can_be_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # everything after -- is run as is, without a shell; for pipes and variables, start a shell
    mngr create greet --no-connect -- sh -c 'echo "hello from $MNGR_AGENT_NAME" | tr a-z A-Z'
    """)
    expect(
        e2e.run(
            (
                'mngr create greet --no-connect -- sh -c \'echo "hello from $MNGR_AGENT_NAME" | '
                "tr a-z A-Z'"
            ),
            comment="everything after -- is run as is, without a shell; for pipes and variables, "
            "start a shell",
        )
    ).to_succeed()
    expect(e2e.run("mngr wait greet DONE --timeout 60s")).to_succeed()
    expect(e2e.run("mngr capture greet").stdout).to_contain("HELLO FROM GREET")


def test_c_is_short_for_create(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # c is an alias of create
    mngr c quick --no-connect -- true
    """)
    result = e2e.run("mngr c quick --no-connect -- true", comment="c is an alias of create")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Created quick; it is ")
    assert names(e2e) == ["quick"]


def test_foreground_prints_what_the_agent_prints(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run it without a terminal: print its output, and return when it ends
    mngr create hello --foreground -- echo 'hello, world'
    """)
    result = e2e.run(
        "mngr create hello --foreground -- echo 'hello, world'",
        comment="run it without a terminal: print its output, and return when it ends",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("hello, world\n")
    expect(state(e2e, "hello")).to_equal("DONE")


def test_foreground_exits_with_the_code_of_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # in the foreground, its exit code is the command's exit code
    mngr create broken --foreground -- sh -c 'exit 3' || echo "exit code $?"
    """)
    result = e2e.run(
        "mngr create broken --foreground -- sh -c 'exit 3' || echo \"exit code $?\"",
        comment="in the foreground, its exit code is the command's exit code",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 3\n")
    expect(show(e2e, "broken")).to_include_json({"state": "FAILED", "exit_code": 3})


def test_a_name_can_be_taken_only_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # names are unique
    mngr create fix --no-connect -- sleep 1000 || echo "exit code $?"
    """)
    given(e2e, "fix")
    result = e2e.run(
        'mngr create fix --no-connect -- sleep 1000 || echo "exit code $?"',
        comment="names are unique",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 1\n")
    expect(result.stderr).to_contain("the name 'fix' is taken")
    assert names(e2e) == ["fix"]


def test_reuse_finds_the_agent_that_is_there(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # with --reuse, use the existing agent
    mngr create server --reuse --no-connect -- sleep 1000
    mngr create server --reuse --no-connect -- sleep 1000
    """)
    expect(
        e2e.run(
            "mngr create server --reuse --no-connect -- sleep 1000",
            comment="with --reuse, use the existing agent",
        )
    ).to_succeed()
    second = e2e.run("mngr create server --reuse --no-connect -- sleep 1000")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("Reused server; it is RUNNING")
    assert names(e2e) == ["server"]


def test_a_dry_run_creates_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # see what would happen, without doing it
    mngr create maybe --dry-run -- sleep 1000
    """)
    result = e2e.run(
        "mngr create maybe --dry-run -- sleep 1000",
        comment="see what would happen, without doing it",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Would create maybe on localhost")
    assert names(e2e) == []
    expect(git(e2e, "branch --list")).not_to_contain("maybe")


def test_an_agent_can_have_labels(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # add labels, to find it again
    mngr create lint --no-connect --label team=core --label ticket=431 -- true
    """)
    expect(
        e2e.run(
            "mngr create lint --no-connect --label team=core --label ticket=431 -- true",
            comment="add labels, to find it again",
        )
    ).to_succeed()
    expect(show(e2e, "lint")["labels"]).to_equal({"team": "core", "ticket": "431"})


def test_an_agent_counts_to_a_project(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # set its project; the default is the name of the directory
    mngr create home --no-connect --project website -- true
    """)
    expect(
        e2e.run(
            "mngr create home --no-connect --project website -- true",
            comment="set its project; the default is the name of the directory",
        )
    ).to_succeed()
    expect(show(e2e, "home")["project"]).to_equal("website")


def test_a_timeout_ends_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # limit its running time
    mngr create brief --no-connect --timeout 1s -- sleep 1000
    mngr wait brief FAILED --timeout 1m
    """)
    expect(
        e2e.run(
            "mngr create brief --no-connect --timeout 1s -- sleep 1000",
            comment="limit its running time",
        )
    ).to_succeed()
    second = e2e.run("mngr wait brief FAILED --timeout 1m")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("brief FAILED timed out after 1 s")
    expect(state(e2e, "brief")).to_equal("FAILED")


def test_a_connect_command_knows_the_name(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # instead of attaching, run your own command with the agent's name
    mngr create shown --connect-command 'echo "ready: $MNGR_AGENT_NAME"' -- sleep 1000
    """)
    result = e2e.run(
        ("mngr create shown --connect-command 'echo \"ready: $MNGR_AGENT_NAME\"' -- sleep 1000"),
        comment="instead of attaching, run your own command with the agent's name",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("ready: shown")
    expect(state(e2e, "shown")).to_equal("RUNNING")


def test_a_host_can_be_named(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # choose its host; this machine is called localhost
    mngr create near@localhost --no-connect -- sleep 1000
    """)
    expect(
        e2e.run(
            "mngr create near@localhost --no-connect -- sleep 1000",
            comment="choose its host; this machine is called localhost",
        )
    ).to_succeed()
    expect(show(e2e, "near")).to_include_json({"state": "RUNNING", "host": {"name": "localhost"}})


def test_the_result_can_be_json(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # for scripts, print the result as JSON
    mngr create told --no-connect --format json -- true
    """)
    result = e2e.run(
        "mngr create told --no-connect --format json -- true",
        comment="for scripts, print the result as JSON",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_include_json({"agent_name": "told", "host_name": "localhost"})
    expect(result.stdout).at("agent_id").to_equal(show(e2e, "told")["id"])


def test_quiet_prints_the_id(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # or print only the id
    mngr create hush --no-connect --quiet -- true
    """)
    result = e2e.run(
        "mngr create hush --no-connect --quiet -- true",
        comment="or print only the id",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal(f"{show(e2e, 'hush')['id']}\n")
    expect(result.stderr).to_be_empty()
