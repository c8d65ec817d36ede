"""The tutorial: Choosing what to list."""

from __future__ import annotations

import re

from mngr_e2e import E2eSession, expect
from tests.e2e.world import commit, ended, given, names, show


def test_only_those_that_run(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list running agents
    mngr list --running
    """)
    given(e2e, "fix")
    ended(e2e, "quick")
    result = e2e.run("mngr list --running", comment="list running agents")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("fix")
    expect(result.stdout).not_to_contain("quick")


def test_state_flags_add_up(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list failed and stopped agents: state filters add up
    mngr list --failed --stopped
    """)
    given(e2e, "fix")
    given(e2e, "halted")
    ended(e2e, "broken", "sh -c 'exit 3'")
    expect(e2e.run("mngr stop halted")).to_succeed()
    result = e2e.run(
        "mngr list --failed --stopped",
        comment="list failed and stopped agents: state filters add up",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^halted +STOPPED")
    expect(result.stdout).to_match(r"^broken +FAILED")
    expect(result.stdout).not_to_contain("fix")


def test_types_and_ends_select(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list agents of a type that are DONE or LOST
    mngr list --type command --done --lost
    """)
    ended(e2e, "lint")
    given(e2e, "fix")
    result = e2e.run(
        "mngr list --type command --done --lost",
        comment="list agents of a type that are DONE or LOST",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^lint +DONE ")
    expect(result.stdout).not_to_contain("fix")


def test_only_those_that_are_alive(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list all agents that are alive
    mngr list --active
    """)
    given(e2e, "fix")
    ended(e2e, "quick")
    result = e2e.run("mngr list --active", comment="list all agents that are alive")
    expect(result).to_succeed()
    expect(result.stdout).to_contain("fix")
    expect(result.stdout).not_to_contain("quick")


def test_labels_select(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # filter by label, with a value or with any
    mngr list --label team=core
    mngr list --label ticket
    """)
    given(e2e, "lint", "--label team=core --label ticket=431")
    given(e2e, "fix", "--label team=web")
    first = e2e.run(
        "mngr list --label team=core", comment="filter by label, with a value or with any"
    )
    expect(first).to_succeed()
    second = e2e.run("mngr list --label ticket")
    expect(second).to_succeed()
    for result in (first, second):
        expect(result.stdout).to_contain("lint")
        expect(result.stdout).not_to_contain("fix")


def test_tags_of_hosts_select(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # filter by a tag of the host; `create --host-label gpu=a100` tags a new host
    mngr list --host-label gpu
    """)
    given(e2e, "fix")
    result = e2e.run("mngr list --host-label gpu", comment="filter by a tag of the host")
    expect(result).to_succeed()
    expect(result.stdout).to_equal("No agents found\n")
    ignored = e2e.run("mngr create foo --host-label gpu=a100 -- true", comment="no host is made")
    expect(ignored).to_fail()
    expect(ignored.stderr).to_contain("--host-label is for a new host")


def test_a_project_selects(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # filter by project
    mngr list --project website
    """)
    given(e2e, "home", "--project website")
    given(e2e, "fix")
    result = e2e.run("mngr list --project website", comment="filter by project")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^home +RUNNING ")
    expect(result.stdout).not_to_contain("fix")


def test_an_expression_selects(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # filter by an expression over the fields
    mngr list --include 'state == "FAILED" && exit_code == 3'
    """)
    ended(e2e, "broken", "sh -c 'exit 3'")
    ended(e2e, "worse", "sh -c 'exit 4'")
    result = e2e.run(
        "mngr list --include 'state == \"FAILED\" && exit_code == 3'",
        comment="filter by an expression over the fields",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("broken")
    expect(result.stdout).not_to_contain("worse")


def test_an_expression_excludes(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # exclude agents that match an expression
    mngr list --exclude 'state == "DONE"' --format '{name}'
    """)
    given(e2e, "fix")
    ended(e2e, "quick")
    result = e2e.run(
        "mngr list --exclude 'state == \"DONE\"' --format '{name}'",
        comment="exclude agents that match an expression",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("fix\n")


def test_expressions_know_texts_and_numbers(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # expressions can use text, numbers and times
    mngr list --include 'name.startsWith("s") && runtime_seconds < 3600.0'
    """)
    given(e2e, "server")
    given(e2e, "fix")
    result = e2e.run(
        "mngr list --include 'name.startsWith(\"s\") && runtime_seconds < 3600.0'",
        comment="expressions can use text, numbers and times",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_contain("server")
    expect(result.stdout).not_to_contain("fix")


def test_the_list_can_be_sorted_and_cut(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # sort them, and list only the first few
    mngr list --sort name:desc --limit 3
    """)
    for name in ("a", "b", "c", "d"):
        given(e2e, name, command="true")
    result = e2e.run(
        "mngr list --sort name:desc --limit 3",
        comment="sort them, and list only the first few",
    )
    expect(result).to_succeed()
    shown = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    assert shown == ["d", "c", "b"]


def test_the_newest_comes_first(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list the newest agent
    mngr list --sort create_time:desc --limit 1 --format '{name}'
    """)
    given(e2e, "older", command="true")
    given(e2e, "newer", command="true")
    result = e2e.run(
        "mngr list --sort create_time:desc --limit 1 --format '{name}'",
        comment="list the newest agent",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_equal("newer\n")


def test_ids_are_printed_one_per_line(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print ids, one per line; unlike names they never change
    mngr list --running --ids
    """)
    given(e2e, "fix")
    result = e2e.run(
        "mngr list --running --ids",
        comment="print ids, one per line; unlike names they never change",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"\Aagent-[0-9a-f]{32}\n\Z")
    expect(e2e.run("mngr rename fix mended")).to_succeed()
    expect(show(e2e, "mended")["id"]).to_equal(result.stdout.strip())


def test_names_can_come_from_standard_input(e2e: E2eSession) -> None:
    e2e.write_tutorial_block(r"""
    # list only the agents named on standard input
    printf 'fix\nserver\n' | mngr list --stdin
    """)
    for name in ("fix", "server", "other"):
        given(e2e, name)
    result = e2e.run(
        "printf 'fix\\nserver\\n' | mngr list --stdin",
        comment="list only the agents named on standard input",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_have_line_count(3)
    expect(result.stdout).not_to_contain("other")


def test_the_list_knows_how_far_each_has_come(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show progress: commits made, commits missing, uncommitted files
    mngr list --running --fields name,ahead,behind,dirty
    """)
    given(e2e, "fix")
    commit(e2e, "fix", "hello.txt", "hello")
    expect(e2e.run("mngr exec fix 'touch loose.txt'")).to_succeed()
    result = e2e.run(
        "mngr list --running --fields name,ahead,behind,dirty",
        comment="show progress: commits made, commits missing, uncommitted files",
    )
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^fix +1 +0 +1$")


def test_hosts_can_be_listed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list hosts instead of agents
    mngr list --hosts
    """)
    given(e2e, "fix")
    result = e2e.run("mngr list --hosts", comment="list hosts instead of agents")
    expect(result).to_succeed()
    expect(result.stdout).to_match(r"^localhost +local +RUNNING +1$")


def test_the_list_can_be_of_this_machine(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # list agents on this machine, or on the hosts of one provider
    mngr list --local --limit 2
    mngr list --provider local --limit 2
    """)
    for name in ("a", "b", "c"):
        given(e2e, name, command="true")
    first = e2e.run(
        "mngr list --local --limit 2",
        comment="list agents on this machine, or on the hosts of one provider",
    )
    expect(first).to_succeed()
    second = e2e.run("mngr list --provider local --limit 2")
    expect(second).to_succeed()
    for result in (first, second):
        expect(result.stdout).to_have_line_count(3)
        expect(result.stdout).not_to_match("^c ")


def test_a_watched_list_is_printed_again(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # refresh the list until Ctrl-C
    mngr list --watch 1
    """)
    given(e2e, "fix")
    watch = e2e.start("mngr list --watch 1", comment="refresh the list until Ctrl-C")
    watch.wait_for_output(re.compile("fix +RUNNING"))
    expect(e2e.run("mngr stop fix")).to_succeed()
    watch.wait_for_output(re.compile("fix +STOPPED"))
    watch.stop()
    expect(watch.stdout).to_match("^fix +RUNNING")


def test_another_home_is_another_world(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # another home has its own agents
    MNGR_HOST_DIR=~/elsewhere mngr list
    """)
    given(e2e, "fix")
    result = e2e.run(
        "MNGR_HOST_DIR=~/elsewhere mngr list",
        comment="another home has its own agents",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("No agents found")
    assert names(e2e) == ["fix"]
