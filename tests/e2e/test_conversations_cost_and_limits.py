"""The tutorial: Conversations, cost and limits."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import given, show, state


def test_a_time_limit_is_an_option_of_create(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # give an agent one hour; at the limit it is stopped, and its work is kept
    mngr create slow --no-connect --timeout 1h -- sleep 1000
    """)
    result = e2e.run(
        "mngr create slow --no-connect --timeout 1h -- sleep 1000",
        comment="give an agent an hour; over a limit it would be ended, and everything of its "
        "would stay",
    )
    expect(result).to_succeed()
    expect(e2e.run("mngr limit slow --format '{timeout}'").stdout).to_equal("3600.0\n")


def test_limits_are_shown(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print its limits
    mngr limit slow
    """)
    given(e2e, "slow", "--timeout 90s")
    result = e2e.run("mngr limit slow", comment="print its limits")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^NAME +TIMEOUT +MAX COST +MAX TOKENS\nslow +1m 30s\n$")


def test_a_limit_changes_while_the_agent_runs(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # change a limit while it runs: one second has passed already, so it is stopped, with the reason
    mngr limit slow --timeout 1s
    mngr wait slow FAILED --timeout 1m
    """)
    given(e2e, "slow", "--timeout 1h")
    first = e2e.run(
        "mngr limit slow --timeout 1s",
        comment="change that while it runs: a second has passed already, so it is ended, and its "
        "state says why",
    )
    expect(first).to_succeed()
    expect(first.stdout).to_equal("slow: 1h -> 1 s\n")
    second = e2e.run("mngr wait slow FAILED --timeout 1m", timeout=90)
    expect(second).to_succeed()
    expect(second.stdout).to_equal("slow FAILED timed out after 1 s\n")
    expect(show(e2e, "slow")["exit_code"]).to_equal(124)


def test_a_lifted_limit_lets_it_go_on(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # remove the limit, and start it again
    mngr limit slow --timeout none
    mngr start slow
    """)
    given(e2e, "slow", "--timeout 1h")
    expect(e2e.run("mngr stop slow")).to_succeed()
    first = e2e.run(
        "mngr limit slow --timeout none", comment="remove the limit, and start it again"
    )
    expect(first).to_succeed()
    expect(first.stdout).to_equal("slow: 1h -> no limits\n")
    expect(e2e.run("mngr start slow")).to_succeed()
    expect(state(e2e, "slow")).to_equal("RUNNING")


def test_what_cannot_be_metered_is_not_limited(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # limits on dollars and tokens require a coding agent, which reports its usage
    mngr limit slow --max-cost 5 --max-tokens 2M || echo "exit code $?"
    """)
    given(e2e, "slow")
    result = e2e.run(
        'mngr limit slow --max-cost 5 --max-tokens 2M || echo "exit code $?"',
        comment="coding agents tell what they use, so dollars and tokens can be limited too; not "
        "so with others",
    )
    expect(result.stdout).to_equal("exit code 2\n")
    expect(result.stderr).to_contain("agents of type 'command' do not report their usage")


def test_usage_sums_up(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show the usage so far, in total or by ticket; no agent here uses a model, so it is zero
    mngr usage
    mngr usage --by label:ticket
    """)
    given(e2e, "slow")
    first = e2e.run(
        "mngr usage",
        comment="show the usage so far, of all agents or by ticket; nothing yet: no agent here "
        "uses a model",
    )
    expect(first).to_succeed()
    expect(first.stdout).to_equal("No usage found\n")
    second = e2e.run("mngr usage --by label:ticket")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("No usage found\n")


def test_lists_have_columns_for_it(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show the cost and the idle time of each agent
    mngr list --fields name,state,idle,tokens,cost
    """)
    given(e2e, "slow")
    result = e2e.run(
        "mngr list --fields name,state,idle,tokens,cost",
        comment="show the cost and the idle time of each agent",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^NAME +STATE +IDLE +TOKENS +COST\nslow +RUNNING +\d+\n$")


def test_prices_are_settings(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # set your own prices: dollars per million tokens, by the prefix of the model's name
    mngr config set prices.my-model.input 0.5
    mngr config set prices.my-model.output 2
    """)
    first = e2e.run(
        "mngr config set prices.my-model.input 0.5",
        comment="set your own prices: dollars per million tokens",
    )
    expect(first).to_succeed()
    expect(e2e.run("mngr config set prices.my-model.output 2")).to_succeed()
    expect(e2e.run("mngr config get prices.my-model.input").stdout).to_equal("0.5\n")


def test_open_questions_are_listed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list permission requests
    mngr answer --all-pending
    """)
    given(e2e, "slow")
    result = e2e.run("mngr answer --all-pending", comment="list permission requests")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("No pending requests found\n")


def test_who_asks_nothing_cannot_be_answered(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # answer a request with `mngr answer slow --allow`; this agent has none
    mngr answer slow || echo "exit code $?"
    """)
    given(e2e, "slow")
    result = e2e.run(
        'mngr answer slow || echo "exit code $?"',
        comment="the answer to one who does would be: mngr answer slow --allow; this one asks "
        "nothing",
    )
    expect(result.stdout).to_equal("exit code 1\n")
    expect(result.stderr).to_contain("slow has no permission request: it is RUNNING")


def test_a_plain_command_keeps_no_conversation(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the conversation of a coding agent; a plain command has none
    mngr transcript slow || echo "exit code $?"
    """)
    given(e2e, "slow")
    result = e2e.run(
        'mngr transcript slow || echo "exit code $?"',
        comment="print the conversation of a coding agent; a plain command has none",
    )
    expect(result.stdout).to_equal("exit code 1\n")
    expect(result.stderr).to_contain("mngr capture slow")


def test_waiting_for_an_answer_takes_somebody_who_answers(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # send a message and wait for the reply; again, that requires an agent that replies
    mngr message slow -m 'how is it going?' --wait --timeout 10m || echo "exit code $?"
    """)
    given(e2e, "slow")
    result = e2e.run(
        "mngr message slow -m 'how is it going?' --wait --timeout 10m || echo \"exit code $?\"",
        comment="send a message and wait for the reply; again, that requires an agent that replies",
    )
    expect(result.stdout).to_equal("exit code 1\n")
    expect(result.stderr).to_contain("has no transcript")
    expect(e2e.run("mngr event slow").stdout).not_to_contain("message_delivered")
