"""The tutorial: Many at once."""

from __future__ import annotations

import json

from mngr_e2e import E2eSession, expect
from tests.e2e.world import given, names, show, state


def test_a_batch_makes_an_agent_of_each_line(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # write one line of JSON per agent; each result is one line too
    echo '{"name": "unit", "args": ["true"]}' > ~/jobs.jsonl
    echo '{"name": "types", "args": ["false"]}' >> ~/jobs.jsonl
    mngr create --batch ~/jobs.jsonl --label run=nightly
    """)
    expect(
        e2e.run(
            'echo \'{"name": "unit", "args": ["true"]}\' > ~/jobs.jsonl',
            comment="write one line of JSON per agent; each result is one line too",
        )
    ).to_succeed()
    expect(e2e.run('echo \'{"name": "types", "args": ["false"]}\' >> ~/jobs.jsonl')).to_succeed()
    third = e2e.run("mngr create --batch ~/jobs.jsonl --label run=nightly")
    expect(third).to_succeed()
    results = [json.loads(line) for line in third.stdout.splitlines()]
    assert {result["agent_name"] for result in results} == {"unit", "types"}
    assert [result["error"] for result in results] == [None, None]
    expect(show(e2e, "unit")["labels"]).to_equal({"run": "nightly"})


def test_the_failed_of_a_batch_are_shown(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # wait for all of them, with exit code 1 if one failed; list the failed ones
    mngr list --label run=nightly --ids | mngr wait - --timeout 5m || echo "exit code $?"
    mngr list --label run=nightly --failed --format '{name}: exit code {exit_code}'
    """)
    given(e2e, "unit", "--label run=nightly", command="true")
    given(e2e, "types", "--label run=nightly", command="false")
    first = e2e.run(
        'mngr list --label run=nightly --ids | mngr wait - --timeout 5m || echo "exit code $?"',
        comment="wait for all of them, with exit code 1 if one failed; list the failed ones",
    )
    expect(first).to_succeed()
    second = e2e.run(
        "mngr list --label run=nightly --failed --format '{name}: exit code {exit_code}'"
    )
    expect(second).to_succeed()
    expect(first.stdout).to_contain("unit DONE exit code 0")
    expect(first.stdout).to_match("exit code 1$")
    expect(first.stderr).to_contain("1 of 2 failed: types is FAILED")
    expect(second.stdout).to_equal("types: exit code 1\n")


def test_the_failed_of_a_batch_can_run_again(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start them again
    mngr list --label run=nightly --failed --ids | mngr start -
    """)
    given(e2e, "types", "--label run=nightly", command="false")
    expect(e2e.run("mngr wait types FAILED --timeout 60s")).to_succeed()
    result = e2e.run(
        "mngr list --label run=nightly --failed --ids | mngr start -", comment="start them again"
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Started types")
    expect(e2e.run("mngr event types").stdout).to_contain("agent_started")


def test_a_batch_can_come_from_a_pipe(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # read from a pipe, create two at a time; options apply to all lines
    for n in 1 2 3; do echo "{\"name\": \"part$n\"}"; done |
      mngr create --batch - --max-parallel 2 -- sleep 1000
    """)
    result = e2e.run(
        (
            'for n in 1 2 3; do echo "{\\"name\\": \\"part$n\\"}"; done | mngr create --batch '
            "- --max-parallel 2 -- sleep 1000"
        ),
        comment="read from a pipe, create two at a time; options apply to all lines",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_have_line_count(3)
    assert sorted(names(e2e)) == ["part1", "part2", "part3"]
    expect(state(e2e, "part2")).to_equal("RUNNING")


def test_a_wrong_line_does_not_stop_the_others(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # an invalid line is reported, and the other agents are created: exit code 3
    printf '%s\n' '{"name": "good", "args": ["true"]}' '{"nome": "bad"}' |
      mngr create --batch - || echo "exit code $?"
    """)
    result = e2e.run(
        (
            'printf \'%s\\n\' \'{"name": "good", "args": ["true"]}\' \'{"nome": "bad"}\' '
            '| mngr create --batch - || echo "exit code $?"'
        ),
        comment="an invalid line is reported, and the other agents are created: exit code 3",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("exit code 3\n")
    expect(result.stdout).to_contain("unknown key 'nome'; did you mean 'name'?")
    assert names(e2e) == ["good"]


def test_a_batch_can_be_stopped(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # stop a whole batch
    mngr list --include 'name.startsWith("part")' --ids | mngr stop - --quiet
    """)
    for name in ("part1", "part2", "fix"):
        given(e2e, name)
    expect(
        e2e.run(
            "mngr list --include 'name.startsWith(\"part\")' --ids | mngr stop - --quiet",
            comment="stop a whole batch",
        )
    ).to_succeed()
    assert [state(e2e, name) for name in ("part1", "part2", "fix")] == [
        "STOPPED",
        "STOPPED",
        "RUNNING",
    ]
