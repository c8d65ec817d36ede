"""The tutorial: What agents start with."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import host_dir, show, until_shown


def test_env_gives_the_agent_a_variable(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # give it a variable
    mngr create loud --foreground --env LEVEL=high -- sh -c 'echo "level $LEVEL"'
    """)
    result = e2e.run(
        ("mngr create loud --foreground --env LEVEL=high -- sh -c 'echo \"level $LEVEL\"'"),
        comment="give it a variable",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("level high\n")


def test_an_env_file_gives_the_agent_its_variables(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # give it the variables of a file
    printf 'LEVEL=low\nCOLOR=green\n' > ~/levels.env
    mngr create calm --foreground --env-file ~/levels.env -- \
      sh -c 'echo "level $LEVEL, $COLOR"'
    """)
    expect(
        e2e.run(
            "printf 'LEVEL=low\\nCOLOR=green\\n' > ~/levels.env",
            comment="give it the variables of a file",
        )
    ).to_succeed()
    second = e2e.run(
        "mngr create calm --foreground --env-file ~/levels.env -- sh -c 'echo \"level "
        "$LEVEL, $COLOR\"'"
    )
    expect(second).to_succeed()
    expect(second.stdout).to_equal("level low, green\n")


def test_pass_env_hands_over_a_variable(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # pass on a variable of your environment
    COLOR=green mngr create painter --foreground --pass-env COLOR -- \
      sh -c 'echo "painting it $COLOR"'
    """)
    result = e2e.run(
        (
            "COLOR=green mngr create painter --foreground --pass-env COLOR -- sh -c 'echo "
            '"painting it $COLOR"\''
        ),
        comment="pass on a variable of your environment",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("painting it green\n")
    unset = e2e.run("mngr create --foreground --pass-env COLOR -- sh -c 'echo ${COLOR-none}'")
    expect(unset).to_succeed()
    expect(unset.stdout).to_equal("none\n")
    expect(unset.stderr).to_contain("mngr: --pass-env: COLOR is not set here")


def test_a_token_does_not_get_in_by_accident(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # other variables are not passed on, so no token leaks by accident
    TOKEN=secret mngr create outsider --foreground -- sh -c 'echo "token: ${TOKEN:-none}"'
    """)
    result = e2e.run(
        (
            "TOKEN=secret mngr create outsider --foreground -- sh -c 'echo \"token: "
            "${TOKEN:-none}\"'"
        ),
        comment="other variables are not passed on, so no token leaks by accident",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("token: none\n")


def test_a_file_is_there_before_the_agent_starts(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # put a file into its directory before it starts
    echo 'be kind' > ~/rules.txt
    mngr create ruled --foreground --upload-file ~/rules.txt:rules.txt -- cat rules.txt
    """)
    expect(
        e2e.run(
            "echo 'be kind' > ~/rules.txt", comment="put a file into its directory before it starts"
        )
    ).to_succeed()
    second = e2e.run(
        "mngr create ruled --foreground --upload-file ~/rules.txt:rules.txt -- cat rules.txt"
    )
    expect(second).to_succeed()
    expect(second.stdout).to_equal("be kind\n")
    expect(e2e.work / "rules.txt").not_to_exist()


def test_a_provision_command_runs_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # run a command in its directory before it starts
    mngr create built --foreground --provision-command 'mkdir build; date > build/when' -- ls build
    """)
    result = e2e.run(
        (
            "mngr create built --foreground --provision-command 'mkdir build; date > "
            "build/when' -- ls build"
        ),
        comment="run a command in its directory before it starts",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("when\n")


def test_a_first_message_is_typed_once_the_agent_runs(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # give it a first message; it is typed once the program runs
    mngr create clerk --no-connect -m 'two apples' -- \
      sh -c 'while read line; do echo "noted: $line"; done'
    """)
    result = e2e.run(
        (
            "mngr create clerk --no-connect -m 'two apples' -- sh -c 'while read line; do echo "
            '"noted: $line"; done\''
        ),
        comment="give it a first message; it is typed once the program runs",
    )
    expect(result).to_succeed()
    expect(result.stderr).to_contain("Message delivered.")
    until_shown(e2e, "clerk", "noted: two apples")


def test_a_first_message_can_come_from_a_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # or take the message from a file
    echo 'three pears' > ~/order.txt
    mngr create grocer --no-connect --message-file ~/order.txt -- \
      sh -c 'read line; echo "order: $line"'
    """)
    expect(
        e2e.run("echo 'three pears' > ~/order.txt", comment="or take the message from a file")
    ).to_succeed()
    second = e2e.run(
        "mngr create grocer --no-connect --message-file ~/order.txt -- sh -c 'read line; "
        'echo "order: $line"\''
    )
    expect(second).to_succeed()
    expect(second.stderr).to_contain("Message ")
    expect(e2e.run("mngr wait grocer DONE --timeout 60s")).to_succeed()
    expect(e2e.run("mngr capture grocer").stdout).to_contain("order: three pears")


def test_a_second_window_runs_a_shell_command(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # open a second window with a shell command
    mngr create site --no-connect -w log='echo "log begins"; exec sleep 1000' -- sleep 1000
    """)
    result = e2e.run(
        (
            "mngr create site --no-connect -w log='echo \"log begins\"; exec sleep 1000' -- "
            "sleep 1000"
        ),
        comment="open a second window with a shell command",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Created site; it is RUNNING")
    expect(lambda: e2e.run("mngr capture site --window log").stdout).eventually().to_contain(
        "log begins"
    )


def test_a_terminal_has_the_chosen_size(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # choose the size of its terminal
    mngr create narrow --no-connect --tmux-width 60 --tmux-height 20 -- \
      sh -c 'stty size; exec sleep 1000'
    """)
    result = e2e.run(
        (
            "mngr create narrow --no-connect --tmux-width 60 --tmux-height 20 -- sh -c 'stty "
            "size; exec sleep 1000'"
        ),
        comment="choose the size of its terminal",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("Created narrow; it is RUNNING")
    expect(lambda: e2e.run("mngr capture narrow").stdout).eventually().to_equal("20 60\n")


def test_a_terminal_can_be_recorded(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # record its terminal from the start
    mngr create film --no-connect --record -- echo 'action'
    """)
    expect(
        e2e.run(
            "mngr create film --no-connect --record -- echo 'action'",
            comment="record its terminal from the start",
        )
    ).to_succeed()
    expect(e2e.run("mngr wait film DONE --timeout 60s")).to_succeed()
    casts = list((host_dir(e2e) / "agents" / str(show(e2e, "film")["id"])).rglob("*.cast"))
    assert len(casts) == 1
    expect(casts[0].read_text).eventually().to_contain("action")
