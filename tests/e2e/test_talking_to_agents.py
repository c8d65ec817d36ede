"""The tutorial: Talking to agents."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import (
    ask_tmux,
    clerk,
    clients,
    ended,
    given,
    host_dir,
    show,
    state,
    until_shown,
)


def test_a_message_is_read(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # type a message into its terminal, and confirm that the program read it
    mngr message clerk -m 'one melon'
    """)
    clerk(e2e)
    result = e2e.run(
        "mngr message clerk -m 'one melon'",
        comment="type a message into its terminal, and confirm that the program read it",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("clerk: delivered\n")
    until_shown(e2e, "clerk", "noted: one melon")


def test_the_outcome_of_a_message_is_for_scripts(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # for scripts, print the outcome: delivered means that the program has read all of it
    mngr msg clerk -m 'six eggs' --format '{outcome}'
    """)
    clerk(e2e)
    result = e2e.run(
        "mngr msg clerk -m 'six eggs' --format '{outcome}'",
        comment="for scripts, print the outcome",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("delivered\n")


def test_a_message_can_come_from_a_pipe(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # send standard input
    git log -1 --format=%s | mngr message clerk
    """)
    clerk(e2e)
    result = e2e.run("git log -1 --format=%s | mngr message clerk", comment="send standard input")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("clerk: delivered\n")
    until_shown(e2e, "clerk", "noted: Begin")


def test_a_message_can_be_a_file(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # send a file
    echo 'a pound of flour' > ~/note.txt
    mngr message clerk --message-file ~/note.txt
    """)
    clerk(e2e)
    expect(e2e.run("echo 'a pound of flour' > ~/note.txt", comment="send a file")).to_succeed()
    second = e2e.run("mngr message clerk --message-file ~/note.txt")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("clerk: delivered\n")
    until_shown(e2e, "clerk", "noted: a pound of flour")


def test_a_message_can_go_to_several(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # send it to several agents
    mngr create cook --no-connect -- cat
    mngr message clerk cook -m 'dinner at eight'
    """)
    clerk(e2e)
    expect(
        e2e.run("mngr create cook --no-connect -- cat", comment="send it to several agents")
    ).to_succeed()
    second = e2e.run("mngr message clerk cook -m 'dinner at eight'")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("clerk: delivered")
    expect(second.stdout).to_contain("cook: delivered")
    for name in ("clerk", "cook"):
        until_shown(e2e, name, "dinner at eight")


def test_a_message_can_go_to_all_that_a_list_names(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # send it to all agents in a list
    mngr list --include 'name in ["clerk", "cook"]' --ids |
      mngr message - -m 'dinner at nine'
    """)
    clerk(e2e)
    given(e2e, "cook", command="cat")
    given(e2e, "deaf")
    result = e2e.run(
        (
            'mngr list --include \'name in ["clerk", "cook"]\' --ids | mngr message - -m '
            "'dinner at nine'"
        ),
        comment="send it to all agents in a list",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("clerk: delivered")
    expect(result.stdout).to_contain("cook: delivered")
    expect(result.stderr).not_to_contain("deaf")


def test_a_dry_run_sends_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show what would be sent, without sending it
    mngr message clerk -m 'never mind' --dry-run
    """)
    clerk(e2e)
    result = e2e.run(
        "mngr message clerk -m 'never mind' --dry-run",
        comment="show what would be sent, without sending it",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("10 bytes would be sent")
    expect(e2e.run("mngr event clerk").stdout).not_to_contain("message_delivered")


def test_a_stopped_agent_gets_no_message(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # a stopped agent cannot read messages
    mngr stop cook
    mngr message cook -m 'are you there?' || echo "exit code $?"
    """)
    given(e2e, "cook", command="cat")
    expect(e2e.run("mngr stop cook", comment="a stopped agent cannot read messages")).to_succeed()
    second = e2e.run("mngr message cook -m 'are you there?' || echo \"exit code $?\"")
    expect(second).to_succeed()
    expect(second.stdout).to_contain("exit code 1\n")
    expect(second.stderr).to_contain("nothing was sent")
    expect(state(e2e, "cook")).to_equal("STOPPED")


def test_a_message_can_start_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start it first
    mngr message cook -m 'wake up' --start
    """)
    given(e2e, "cook", command="cat")
    expect(e2e.run("mngr stop cook")).to_succeed()
    result = e2e.run("mngr message cook -m 'wake up' --start", comment="start it first")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("cook: delivered\n")
    expect(state(e2e, "cook")).to_equal("RUNNING")


def test_capture_prints_the_screen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print its screen
    mngr capture clerk
    """)
    given(e2e, "clerk", command="sh -c 'echo noted; exec sleep 1000'")
    until_shown(e2e, "clerk", "noted")
    result = e2e.run("mngr capture clerk", comment="print its screen")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("noted\n")


def test_an_option_can_name_the_agent(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # every command also takes the agent's name as an option
    mngr capture --agent clerk
    """)
    given(e2e, "clerk", command="sh -c 'echo noted; exec sleep 1000'")
    until_shown(e2e, "clerk", "noted")
    result = e2e.run(
        "mngr capture --agent clerk",
        comment="every command also takes the agent's name as an option",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("noted\n")


def test_capture_prints_what_scrolled_away(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the scrollback too, with colours
    mngr capture clerk --full --ansi
    """)
    given(
        e2e, "clerk", command=r"""sh -c 'seq 300; printf "\033[31mred\033[0m\n"; exec sleep 1000'"""
    )
    until_shown(e2e, "clerk", "red")
    result = e2e.run(
        "mngr capture clerk --full --ansi", comment="print the scrollback too, with colours"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_start_with("1\n2\n")
    expect(result.stdout).to_contain("\x1b[31mred")
    expect(e2e.run("mngr capture clerk").stdout).not_to_match("^100$")


def test_capture_prints_another_window(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print another window
    mngr capture site --window log
    """)
    given(e2e, "site", "-w log='echo log begins; exec sleep 1000'")
    expect(lambda: e2e.run("mngr capture site --window log").stdout).eventually().to_contain("log")
    result = e2e.run("mngr capture site --window log", comment="print another window")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("log begins\n")


def test_capture_knows_the_last_screen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the last screen of an agent that has ended
    mngr capture greet
    """)
    ended(e2e, "greet", "echo goodbye")
    result = e2e.run(
        "mngr capture greet", comment="print the last screen of an agent that has ended"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("goodbye")


def test_logs_tell_all_that_was_printed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print all its output since it was created; -f follows it until it ends
    mngr logs greet
    mngr logs greet -f
    """)
    given(e2e, "greet", command="sh -c 'echo hello; sleep 0.3; echo goodbye'")
    result = e2e.run("mngr logs greet -f", comment="everything it has printed, until it ends")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("hello\ngoodbye\n")
    expect(e2e.run("mngr logs greet").stdout).to_equal("hello\ngoodbye\n")


def test_connect_attaches(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # attach to it; C-b d detaches, and the agent keeps running
    mngr connect clerk
    """)
    given(e2e, "clerk", command="cat")
    connect = e2e.start(
        "mngr connect clerk",
        comment="attach to it; C-b d detaches, and the agent keeps running",
        pty=True,
    )
    expect(lambda: clients(e2e)).eventually().to_equal(1)
    connect.type("\x02d")
    assert connect.wait() == 0
    expect(clients(e2e)).to_equal(0)
    expect(state(e2e, "clerk")).to_equal("RUNNING")


def test_connect_can_watch_only(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # only watch, and do not start it if it has stopped
    mngr connect clerk --read-only --no-start
    """)
    given(e2e, "clerk", command="cat")
    connect = e2e.start(
        "mngr connect clerk --read-only --no-start",
        comment="only watch, and do not start it if it has stopped",
        pty=True,
    )
    expect(lambda: clients(e2e, "#{client_readonly}")).eventually().to_equal(1)
    connect.type("\x02d")
    assert connect.wait() == 0
    expect(e2e.run("mngr stop clerk")).to_succeed()
    again = e2e.run("mngr connect clerk --read-only --no-start", pty=True)
    expect(again).to_fail()
    expect(state(e2e, "clerk")).to_equal("STOPPED")


def test_connect_can_run_a_command_of_yours(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # attach with your own command, for example in a new window; this one only prints it
    mngr connect clerk --connect-command 'echo "$MNGR_CONNECT_ARGV"'
    """)
    clerk(e2e)
    result = e2e.run(
        "mngr connect clerk --connect-command 'echo \"$MNGR_CONNECT_ARGV\"'",
        comment=(
            "attach in a way of your own, in a new window for instance; this only prints the "
            "command"
        ),
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^tmux .* attach-session ")
    expect(result.stdout).to_contain(str(show(e2e, "clerk")["id"]))


def test_the_tmux_of_the_agents_has_settings_of_its_own(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # the tmux server of the agents has separate settings: change its prefix key to C-a
    echo 'set -g prefix C-a' > ~/.mngr/tmux.user.conf
    """)
    host_dir(e2e).mkdir(exist_ok=True)
    (e2e.home / ".mngr").symlink_to(host_dir(e2e))
    result = e2e.run(
        "echo 'set -g prefix C-a' > ~/.mngr/tmux.user.conf",
        comment="the tmux server of the agents has separate settings: change its prefix key to C-a",
    )
    expect(result).to_succeed()
    clerk(e2e)
    expect(ask_tmux(e2e, "show-options", "-gv", "prefix")).to_equal(["C-a"])
    expect(ask_tmux(e2e, "display-message", "-p", "#{E:status-right}")).to_equal(["detach: C-a d"])
