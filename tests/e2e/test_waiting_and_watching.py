"""The tutorial: Waiting and watching."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import ended, given


def test_wait_returns_when_the_agent_has_ended(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # wait until an agent has ended, or waits for input
    mngr create task --no-connect -- sh -c 'sleep 0.2; echo finished'
    mngr wait task
    """)
    expect(
        e2e.run(
            "mngr create task --no-connect -- sh -c 'sleep 0.2; echo finished'",
            comment="wait until an agent has ended, or waits for input",
        )
    ).to_succeed()
    second = e2e.run("mngr wait task")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("task DONE exit code 0\n")


def test_wait_gives_up_in_time(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # wait for one state with a timeout: exit code 124
    mngr wait fix DONE --timeout 1s || echo "exit code $?"
    """)
    given(e2e, "fix")
    result = e2e.run(
        'mngr wait fix DONE --timeout 1s || echo "exit code $?"',
        comment="wait for one state with a timeout: exit code 124",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("exit code 124\n")
    expect(result.stderr).to_contain("still waiting after 1 s: fix is RUNNING")


def test_wait_returns_for_the_first_of_several(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # wait for the first of several
    mngr wait --any fix task --timeout 1m
    """)
    given(e2e, "fix")
    given(e2e, "task", command="true")
    result = e2e.run(
        "mngr wait --any fix task --timeout 1m", comment="wait for the first of several"
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("task DONE exit code 0")


def test_wait_takes_names_from_a_list(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # wait for all agents with a label, and format the result
    mngr list --label team=core --ids | mngr wait - --format '{name} {state}'
    """)
    given(e2e, "lint", "--label team=core", command="true")
    result = e2e.run(
        "mngr list --label team=core --ids | mngr wait - --format '{name} {state}'",
        comment="wait for all agents with a label, and format the result",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("lint DONE\n")


def test_waiting_for_nobody_fails(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # wait for an agent that does not exist: exit code 4
    mngr wait nobody || echo "exit code $?"
    """)
    result = e2e.run(
        'mngr wait nobody || echo "exit code $?"',
        comment="wait for an agent that does not exist: exit code 4",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 4\n")
    expect(result.stderr).to_contain("no agent 'nobody'")


def test_events_tell_what_happened(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print its events
    mngr event task
    """)
    ended(e2e, "task")
    result = e2e.run("mngr event task", comment="print its events")
    expect(result).to_succeed()
    expect(result.stdout).to_match("agent_created")
    expect(result.stdout).to_match('"agent_exited".*"exit_code": 0')


def test_events_can_be_selected(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print how it ended
    mngr event task --include 'type == "agent_exited"' --tail 1
    """)
    ended(e2e, "task", "sh -c 'exit 5'")
    result = e2e.run(
        "mngr event task --include 'type == \"agent_exited\"' --tail 1",
        comment="print how it ended",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_have_line_count(1)
    expect(result.stdout).to_contain('"exit_code": 5')


def test_the_first_event_is_the_creation(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print only the first event, for a script
    mngr event task --head 1 --format '{type}'
    """)
    ended(e2e, "task")
    result = e2e.run(
        "mngr event task --head 1 --format '{type}'",
        comment="print only the first event, for a script",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("agent_created\n")


def test_events_have_a_source(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print only the events from one source
    mngr event task launcher
    """)
    ended(e2e, "task")
    result = e2e.run("mngr event task launcher", comment="print only the events from one source")
    expect(result).to_succeed()
    expect(result.stdout).to_have_line_count(1)
    expect(result.stdout).to_contain('"source": "launcher"')


def test_events_can_be_followed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # follow its events until Ctrl-C
    mngr event fix --follow --format jsonl
    """)
    given(e2e, "fix")
    follow = e2e.start(
        "mngr event fix --follow --format jsonl",
        comment="follow its events until Ctrl-C",
    )
    follow.wait_for_output("agent_created")
    expect(e2e.run("mngr stop fix")).to_succeed()
    follow.wait_for_output("agent_stopped")
    follow.stop()
    expect(follow.stdout).to_contain("agent_stopped")


def test_observe_tells_of_changes(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # watch all agents: a line of JSON for each, and one for each change
    mngr observe
    """)
    given(e2e, "fix")
    observe = e2e.start(
        "mngr observe", comment="watch all agents: a line of JSON for each, and one for each change"
    )
    observe.wait_for_output("agent_discovered")
    expect(e2e.run("mngr stop fix")).to_succeed()
    observe.wait_for_output('"new_state": "STOPPED"')
    observe.stop()
    expect(observe.stdout).to_contain('"old_state": "RUNNING"')


def test_observe_can_tell_of_discoveries_only(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print only agents that appear and disappear, with a template
    mngr observe --discovery-only --format '{agent.name} {agent.state}'
    """)
    given(e2e, "fix")
    observe = e2e.start(
        "mngr observe --discovery-only --format '{agent.name} {agent.state}'",
        comment="print only agents that appear and disappear, with a template",
    )
    observe.wait_for_output("fix RUNNING")
    given(e2e, "server")
    observe.wait_for_output("server ")
    observe.stop()
    expect(observe.stdout).to_have_line_count(2)
