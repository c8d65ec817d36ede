"""The tutorial: Listing."""

from __future__ import annotations

import json

from mngr_e2e import E2eSession, expect
from tests.e2e.world import given


def test_the_columns_can_be_chosen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # ls is short for list; choose the columns you want
    mngr ls --fields name,state,state_reason,labels.team
    """)
    given(e2e, "lint", "--label team=core")
    result = e2e.run(
        "mngr ls --fields name,state,state_reason,labels.team",
        comment="ls is short for list; choose the columns you want",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^NAME +STATE +STATE REASON +LABELS TEAM$")
    expect(result.stdout).to_match(r"^lint +RUNNING +process is alive +core$")


def test_the_list_can_be_a_json_document(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # for a script: one JSON document
    mngr list --format json
    """)
    given(e2e, "fix")
    result = e2e.run("mngr list --format json", comment="for a script: one JSON document")
    expect(result).to_succeed()
    expect(result.stdout).at("agents[0].name").to_equal("fix")
    expect(result.stdout).at("errors").to_equal([])


def test_the_list_can_be_json_lines(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # or one object per line
    mngr list --format jsonl
    """)
    given(e2e, "fix")
    given(e2e, "server")
    result = e2e.run("mngr list --format jsonl", comment="or one object per line")
    expect(result).to_succeed()
    assert [json.loads(line)["name"] for line in result.stdout.splitlines()] == ["fix", "server"]


def test_a_template_makes_a_line_of_each(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # or a line of your own making
    mngr list --format '{name}\t{state}\t{host.name}'
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr list --format '{name}\\t{state}\\t{host.name}'",
        comment="or a line of your own making",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("fix\tRUNNING\tlocalhost\n")


def test_an_unknown_field_is_an_error(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # a field that does not exist is an error, and the nearest one is named
    mngr list --format '{nane}' || echo "exit code $?"
    """)
    result = e2e.run(
        "mngr list --format '{nane}' || echo \"exit code $?\"",
        comment="a field that does not exist is an error, and the nearest one is named",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 2\n")
    expect(result.stderr).to_contain("did you mean 'name'?")
