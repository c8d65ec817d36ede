"""The tutorial: Stopping, starting, renaming."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect
from tests.e2e.world import ended, given, names, show, state


def test_stopping_twice_is_no_error(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # s is an alias of stop; stopping a stopped agent is not an error
    mngr s server
    mngr stop server
    """)
    given(e2e, "server")
    expect(
        e2e.run(
            "mngr s server",
            comment="s is an alias of stop; stopping a stopped agent is not an error",
        )
    ).to_succeed()
    second = e2e.run("mngr stop server")
    expect(second).to_succeed()
    expect(second.stdout + second.stderr).to_contain("server is already STOPPED.")
    expect(state(e2e, "server")).to_equal("STOPPED")


def test_start_runs_it_again(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # start it, and wait until it is running
    mngr start server
    mngr wait server RUNNING --timeout 1m
    """)
    given(e2e, "server")
    expect(e2e.run("mngr stop server")).to_succeed()
    expect(
        e2e.run("mngr start server", comment="start it, and wait until it is running")
    ).to_succeed()
    second = e2e.run("mngr wait server RUNNING --timeout 1m")
    expect(second).to_succeed()
    expect(second.stdout).to_equal("server RUNNING\n")


def test_restart_makes_a_new_process(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # stop it and start it again: a new process with the same command and directory
    mngr restart server
    """)
    given(e2e, "server")
    before = show(e2e, "server")
    result = e2e.run(
        "mngr restart server",
        comment=("stop it and start it again: a new process with the same command and directory"),
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Restarted server.")
    after = show(e2e, "server")
    assert after["pid"] != before["pid"]
    assert after["work_dir"] == before["work_dir"]


def test_kill_stops_at_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # kill its program immediately
    mngr kill server
    mngr start server
    """)
    given(e2e, "server")
    comment = "kill its program immediately"
    result = e2e.run("mngr kill server", comment=comment)
    expect(result).to_succeed()
    expect(state(e2e, "server")).to_equal("STOPPED")
    expect(e2e.run("mngr start server")).to_succeed()
    expect(state(e2e, "server")).to_equal("RUNNING")


def test_a_dry_run_stops_nothing(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # show what would be stopped
    mngr stop --all --dry-run
    """)
    given(e2e, "server")
    result = e2e.run("mngr stop --all --dry-run", comment="show what would be stopped")
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Would stop server (RUNNING).")
    expect(state(e2e, "server")).to_equal("RUNNING")


def test_stop_takes_names_from_a_list(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # stop all agents in a list
    mngr list --include 'name in ["near", "shown"]' --ids | mngr stop -
    """)
    for name in ("near", "shown", "fix"):
        given(e2e, name)
    result = e2e.run(
        'mngr list --include \'name in ["near", "shown"]\' --ids | mngr stop -',
        comment="stop all agents in a list",
    )
    expect(result).to_succeed()
    expect(result.stdout + result.stderr).to_contain("Stopped near.")
    assert [state(e2e, name) for name in ("near", "shown", "fix")] == [
        "STOPPED",
        "STOPPED",
        "RUNNING",
    ]


def test_an_archived_agent_is_left_out_of_lists(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # archive an agent: it is stopped and hidden from lists
    mngr archive near
    mngr list --archived
    """)
    given(e2e, "near")
    expect(
        e2e.run(
            "mngr archive near", comment="archive an agent: it is stopped and hidden from lists"
        )
    ).to_succeed()
    second = e2e.run("mngr list --archived")
    expect(second).to_succeed()
    expect(second.stdout).to_match("^near +STOPPED")
    assert names(e2e) == []


def test_starting_brings_an_archived_agent_back(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # starting it shows it again
    mngr start near
    mngr stop near --archive
    """)
    given(e2e, "near")
    expect(e2e.run("mngr archive near")).to_succeed()
    first = e2e.run("mngr start near", comment="starting it shows it again")
    expect(first).to_succeed()
    second = e2e.run("mngr stop near --archive")
    expect(second).to_succeed()
    expect(first.stdout + first.stderr).to_contain("Started near.")
    expect(second.stdout + second.stderr).to_contain("Archived near.")
    assert names(e2e) == []
    expect(e2e.run("mngr start near")).to_succeed()
    assert names(e2e) == ["near"]


def test_an_agent_can_be_renamed_while_it_runs(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # rename it, even while it is running; its id and branch stay the same
    mngr rename server web
    """)
    given(e2e, "server")
    before = show(e2e, "server")
    expect(
        e2e.run(
            "mngr rename server web",
            comment="rename it, even while it is running; its id and branch stay the same",
        )
    ).to_succeed()
    after = show(e2e, "web")
    for field in ("id", "pid", "initial_branch"):
        assert after[field] == before[field]
    assert names(e2e) == ["web"]


def test_labels_can_be_set_later(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # set labels later
    mngr label web team=core since=today
    """)
    given(e2e, "web")
    expect(e2e.run("mngr label web team=core since=today", comment="set labels later")).to_succeed()
    expect(show(e2e, "web")["labels"]).to_equal({"team": "core", "since": "today"})


def test_labels_can_be_dropped(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # print the labels, and remove one
    mngr label web
    mngr label web --remove since
    """)
    given(e2e, "web", "--label team=core --label since=today")
    first = e2e.run("mngr label web", comment="print the labels, and remove one")
    expect(first).to_succeed()
    expect(e2e.run("mngr label web --remove since")).to_succeed()
    expect(first.stdout).to_match("^web +since +today$")
    expect(show(e2e, "web")["labels"]).to_equal({"team": "core"})


def test_many_can_be_labelled(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # label several agents
    mngr list --running --ids | mngr label - seen=yes
    """)
    given(e2e, "fix")
    ended(e2e, "quick")
    expect(
        e2e.run("mngr list --running --ids | mngr label - seen=yes", comment="label several agents")
    ).to_succeed()
    expect(show(e2e, "fix")["labels"]).to_equal({"seen": "yes"})
    expect(show(e2e, "quick")["labels"]).to_equal({})
