"""Everything about one agent on one screen, and the words that hands know."""

from __future__ import annotations

import os

from tests.support.cli import Cli, until
from tests.support.screen import Screen
from tests.support.scribe import scribe

NONE = ("--transfer", "none")


def test_show_tells_what_an_agent_is_and_did_and_what_to_type(mngr: Cli) -> None:
    mngr.create("foo", "--label", "a=b", "--timeout", "1h", "--", "sh", "-c", "echo up; sleep 99")
    work = mngr.work_dir("foo")
    (work / "new").write_text("1\n2\n")
    mngr.commit("new", cwd=work)
    (work / "more").write_text("3\n")
    until(lambda: "  up" in mngr("show", "foo").ok().out)
    lines = mngr("show", "foo").ok().out.splitlines()
    head, *facts = lines[: lines.index("")]
    assert head.startswith("foo  RUNNING for "), head
    assert ", since 20" in head and head[-5] in "+-", "a local time with its zone"
    found = {line[:10].rstrip(): line[12:] for line in facts}
    assert found["path"] == str(work)
    assert found["branch"].startswith("mngr/foo, from ")
    assert found["changes"] == "1 commit, 1 uncommitted file: +3 -0 lines"
    assert (found["limits"], found["labels"]) == ("time 1h", "a=b")
    assert found["host"] == ("bare (bare)" if mngr.provider == "bare" else "localhost (local)")
    assert lines[lines.index("") + 1 :] == [
        "  up",
        "",
        "next        mngr connect foo",
        "            mngr logs foo -f",
        "            mngr diff foo",
        "            mngr merge foo",
    ]
    row = mngr("status", "foo", "--format", "json").ok().json()
    assert row["changes"] == {"commits": 1, "files": 2, "added": 3, "removed": 0}
    assert (row["name"], row["ahead"], row["dirty"], row["screen"]) == ("foo", 1, 1, ["up"])
    assert row["limits"]["timeout"] == 3600


def test_show_says_what_comes_after_each_end(local: Cli) -> None:
    local.create("bad", *NONE, "--", "sh", "-c", "exit 3")
    local.create("held", *NONE)
    local("wait", "bad", "FAILED").ok()
    local("kill", "held").ok()
    shown = local("show", "bad").ok().out
    assert "FAILED" in shown and "exit code 3" in shown and "mngr start bad" in shown
    assert "STOPPED" in local("show", "held").ok().out
    local("show", "nosuch").fails(4, "nosuch")


def facts(cli: Cli, name: str) -> dict[str, str]:
    lines = cli("show", name).ok().out.splitlines()
    return {line[:10].rstrip(): line[12:] for line in lines[1:] if line[:1].strip()}


def test_show_has_the_question_of_an_agent_what_it_used_and_its_limits(local: Cli) -> None:
    limits = ("--max-cost", "2.5", "--max-tokens", "1000000")
    scribe(local, "foo", *NONE, *limits, "-m", "spend claude-sonnet-4-5 100000 1000 0 0")
    found = facts(local, "foo")
    assert (found["agent"], found["next"]) == ("scribe", "mngr message foo -m '...'")
    assert found["command"].endswith(f"(pid {local.agent('foo')['pid']})")
    assert (found["used"], found["limits"]) == (
        "$0.32, 101,000 tokens",
        "cost $2.50, 1,000,000 tokens",
    )
    scribe(local, "bar", *NONE, "-m", "ask to run ls")
    found = facts(local, "bar")
    assert (found["reason"], found["next"]) == ("permission: to run ls", "mngr answer bar --allow")


def test_show_of_an_agent_whose_record_cannot_be_read(local: Cli) -> None:
    local.create("foo", *NONE)
    agent = local.agent("foo")["id"]
    (record,) = local.state_dir("foo").glob("agent.*.json")
    record.write_text("{")
    found = facts(local, agent)
    assert (found["id"], found["next"]) == (agent, "mngr doctor")
    assert "unreadable record" in found["reason"]


def test_show_fits_a_narrow_terminal_and_is_not_painted_by_its_agent(local: Cli) -> None:
    text = "x" * 100
    local.create(
        "foo", *NONE, "--", "sh", "-c", f"printf '\\033[2J\\033]0;evil\\007{text}'; sleep 99"
    )
    with Screen(local) as screen:
        screen.tmux("resize-window", "-x", "80", "-y", "40")
        until(lambda: "xxx" in local("show", "foo").ok().out)
        # tmux resizes the terminal a moment later.
        resized = 'until [ "$(stty size)" = "40 80" ]; do sleep 0.01; done'
        screen.type(f"{resized}; clear; {' '.join(local.argv('show', 'foo'))}")
        screen.shows("mngr connect foo")
        lines = screen.tmux("capture-pane", "-p").splitlines()
        assert [line for line in lines if line.startswith("  xxx")] == ["  " + "x" * 77 + "…"]


def test_path_is_where_the_work_is(mngr: Cli) -> None:
    mngr.create("foo", "--", "true")
    work = str(mngr.work_dir("foo"))
    done = mngr("path", "foo").ok()
    assert done.out == f"{work}\n"
    assert ("on the host bare" in done.err) == (mngr.provider == "bare")
    assert mngr("path", "foo:src/x").ok().out == f"{work}/src/x\n"
    row = mngr("path", "foo", "--format", "json").ok().json()
    assert (row["name"], row["path"]) == ("foo", work)


def test_a_script_gets_the_real_name_of_a_path_that_is_not_utf_8(local: Cli) -> None:
    place = local.base / os.fsdecode(b"d\xe9")
    place.mkdir()
    words = ("create", "foo", "--no-connect", *NONE, "--", "true")
    local(*words, cwd=place).ok()
    assert local("path", "foo").ok().out == f"{place}\n"
    assert local("list", "--format", "{work_dir}").ok().out == f"{place}\n"
    assert local("list", "--format", "json").json()["agents"][0]["work_dir"] == str(place)


def test_words_from_other_tools_are_understood(local: Cli) -> None:
    local.create("foo", *NONE)
    assert local("ps", "--format", "{name}").ok().out == "foo\n"
    local("attach", "foo", "--connect-command", "true").ok()
    stubborn = "trap '' TERM HUP; echo armed; while :; do sleep 1; done"
    local.create("deaf", *NONE, "--", "sh", "-c", stubborn)
    until(lambda: "armed" in local("logs", "deaf").ok().out)
    local("kill", "deaf", env={"MNGR__STOP__GRACE": "50s"}, timeout=30).ok()
    assert local.state("deaf") == "STOPPED"
    local("rm", "foo", "-f").ok()
    assert local("list", "--format", "{name}").ok().out == "deaf\n"
