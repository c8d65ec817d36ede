"""The tutorial: Listing."""

from __future__ import annotations

import json

from mngr_e2e import E2eSession, expect
from tests.e2e.world import commit, given


def test_a_list_of_named_agents_tells_what_they_did(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show each agent's state and how long it has lasted, its commits and the lines they changed
    mngr list fix server
    """)
    for name in ("fix", "server", "other"):
        given(e2e, name)
    commit(e2e, "fix", "hello.txt", "hello")
    result = e2e.run(
        "mngr list fix server",
        comment="each agent's state, how long it has been in it, its commits and the lines",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^NAME +STATE +AGE +AGENT +CHANGES +REASON$")
    expect(result.stdout).to_match(r"^fix +RUNNING +\d+s +sleep 1000 +1 \+1 -0$")
    expect(result.stdout).to_match(r"^server +RUNNING +\d+s +sleep 1000 +0$")
    expect(result.stdout).not_to_contain("other")


def test_the_columns_can_be_chosen(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # ls is an alias of list; choose the columns
    mngr ls --fields name,state,state_reason,labels.team
    """)
    given(e2e, "lint", "--label team=core")
    result = e2e.run(
        "mngr ls --fields name,state,state_reason,labels.team",
        comment="ls is an alias of list; choose the columns",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^NAME +STATE +STATE REASON +LABELS TEAM$")
    expect(result.stdout).to_match(r"^lint +RUNNING +process is alive +core$")


def test_ps_is_list_and_need_not_ask_git(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # ps is an alias of list; --no-changes hides the column that requires git
    mngr ps --no-changes
    """)
    given(e2e, "fix")
    result = e2e.run("mngr ps --no-changes", comment="ps is an alias of list")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^NAME +STATE +AGE +AGENT +REASON$")
    expect(result.stdout).to_match(r"^fix +RUNNING +\d+s +sleep 1000$")


def test_status_is_show(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # status is an alias of show
    mngr status fix
    """)
    given(e2e, "fix")
    result = e2e.run("mngr status fix", comment="status is an alias of show")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^fix  RUNNING for \d+s, since ")
    nameless = e2e.run("mngr status", comment="a name is needed, and the error says where they are")
    expect(nameless).to_fail()
    expect(nameless.stderr).to_contain("no agent given; see `mngr list`")


def test_show_tells_everything_about_one(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show one agent in detail: state and reason, work, screen, and the commands to type next
    mngr show fix
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "hello.txt", "hello")
    result = e2e.run("mngr show fix", comment="everything about one agent")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^fix  RUNNING for \d+s, since .* [+-]\d{4}$")
    expect(result.stdout).to_match(r"^changes +1 commit: \+1 -0 lines$")
    expect(result.stdout).to_contain("mngr connect fix")


def test_path_tells_where_the_work_is(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the path of its work directory
    ls "$(mngr path fix)"
    """)
    given(e2e, "fix")
    result = e2e.run('ls "$(mngr path fix)"', comment="print the path of its work directory")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("README.md")


def test_the_list_can_be_a_json_document(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # for scripts, print one JSON document
    mngr list --format json
    """)
    given(e2e, "fix")
    result = e2e.run("mngr list --format json", comment="for scripts, print one JSON document")
    expect(result).to_succeed()
    expect(result.stdout).at("agents[0].name").to_equal("fix")
    expect(result.stdout).at("errors").to_equal([])


def test_the_list_has_a_schema(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the JSON schema of this document
    mngr list --schema
    """)
    given(e2e, "fix")
    result = e2e.run("mngr list --schema", comment="print the JSON schema of this document")
    expect(result).to_succeed()
    schema = json.loads(result.stdout)["properties"]["agents"]["items"]
    (agent,) = json.loads(e2e.run("mngr list --format json").stdout)["agents"]
    assert schema["required"] == list(agent)


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
    # or a template for each line
    mngr list --format '{name}\t{state}\t{host.name}'
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr list --format '{name}\\t{state}\\t{host.name}'",
        comment="or a template for each line",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("fix\tRUNNING\tlocalhost\n")


def test_an_unknown_field_is_an_error(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # an unknown field is an error, and the nearest one is suggested
    mngr list --format '{nane}' || echo "exit code $?"
    """)
    result = e2e.run(
        "mngr list --format '{nane}' || echo \"exit code $?\"",
        comment="an unknown field is an error, and the nearest one is suggested",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("exit code 2\n")
    expect(result.stderr).to_contain("did you mean 'name'?")
