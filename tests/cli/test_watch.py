"""event, observe and wait: what happened, what happens, and until when."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from mngr.api import Mngr, State
from mngr.errors import TimedOut
from mngr.plugins.registry import load_registry
from mngr.settings.layers import Config
from tests.support.cli import Cli, first_line, has_looked, until
from tests.support.fleet import fleet
from tests.support.places import ended
from tests.support.screen import Screen

NONE = ("--transfer", "none")


def types(mngr: Cli, *words: str) -> list[str]:
    return mngr("event", *words, "--format", "{type}").ok().out.split()


def test_events_tell_what_happened(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    mngr("rename", "foo", "bar").ok()
    mngr("stop", "bar").ok()
    mngr("start", "bar").ok()
    every = ["agent_created", "agent_renamed", "agent_exited", "agent_stopped", "agent_started"]
    assert types(mngr, "bar") == every
    assert types(mngr, "bar", "--tail", "2") == every[-2:]
    assert types(mngr, "bar", "--tail", "0") == []
    assert types(mngr, "bar", "--head", "1") == every[:1]
    assert types(mngr, "bar", "launcher") == ["agent_exited"]
    assert types(mngr, "bar", "--include", 'old_name == "foo"') == ["agent_renamed"]
    assert types(mngr, "bar", "--include", "exit_code > 0", "--include", "nothing == 3") == []
    lines = mngr("events", "bar", "--format", "jsonl").ok().out.splitlines()
    events = [json.loads(line) for line in lines]
    assert all({"event_id", "timestamp", "source", "type"} <= set(event) for event in events)
    assert len(events) == 5
    assert mngr("events", "bar", "--format", "json").ok().json()["events"] == events
    with Screen(mngr, {"TZ": "UTC-5:30"}) as screen:
        screen.mngr("event", "bar")
        screen.shows(f"{every[-1]}  ")
        human = [line for line in screen.text().splitlines() if "  agent_" in line]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \+0530", human[1].split("  ")[0])
    shown = datetime.datetime.fromisoformat(human[1].split("  ")[0])
    stamp = mngr("event", "bar", "--format", "{timestamp}").ok().out.splitlines()[1]
    assert stamp.endswith("Z")
    assert shown == datetime.datetime.fromisoformat(stamp).replace(microsecond=0)
    assert human[1].split("  ")[1:] == ["agent_renamed", "source=mngr", "old_name=foo"]
    mngr("event", "nosuch").fails(4, "nosuch")
    mngr("event", "bar", "--include", "type ==").fails(2, "--include")
    mngr("event", "bar", "--tail", "x").fails(2, "--tail")
    mngr("event", "bar", "--head", "1", "--follow").fails(2, "--head")


def test_torn_and_hostile_events_are_skipped_or_cleaned(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    with open(local.state_dir("foo") / "events.jsonl", "ab") as file:
        file.write(b'{"event_id":"1","type":"a\\u001b[31m","n":"\\u001b]0;x\\u0007y"}\n[]\n{"event')
    local("wait", "foo").ok()
    one = ("--include", 'event_id == "1"', "--format", "{type}  n={n}")
    assert local("event", "foo", *one).ok().out == "a  n=y\n"
    assert "\x1b" not in local("event", "foo").ok().out


def test_following_prints_what_comes_and_ends_quietly(local: Cli) -> None:
    local.create("foo", *NONE)
    follower = local.start("event", "foo", "--follow", "--format", "jsonl", "--tail", "1")
    assert json.loads(first_line(follower))["type"] == "agent_created"
    local("stop", "foo").ok()
    assert follower.stdout is not None
    seen = [json.loads(follower.stdout.readline())["type"] for _ in range(2)]
    assert seen == ["agent_exited", "agent_stopped"]
    follower.send_signal(signal.SIGINT)
    assert (follower.wait(10), follower.communicate()[1]) == (0, b"")


@pytest.mark.dear
def test_observing_says_who_is_there_and_what_becomes_of_them(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    observer = mngr.start("observe")
    assert observer.stdout is not None

    def said(type: str, name: str) -> dict[str, str]:
        assert observer.stdout is not None
        for line in observer.stdout:
            event = json.loads(line)
            if event["type"] == type and name in (
                event.get("agent_name"),
                event.get("agent", {}).get("name"),
            ):
                return dict(event)
        raise AssertionError("it ended")

    assert said("agent_discovered", "foo")["source"] == "observe"
    mngr.create("bar", *NONE, "--", "sh", "-c", "exit 3")
    said("agent_discovered", "bar")
    mngr("stop", "foo").ok()
    while (event := said("agent_state_changed", "foo"))["new_state"] != "STOPPED":
        pass
    assert event["old_state"] == "RUNNING"
    mngr("destroy", "-f", "bar").ok()
    said("agent_gone", "bar")
    observer.send_signal(signal.SIGTERM)
    assert observer.wait(10) in (-signal.SIGTERM, 143)
    assert observer.communicate()[1] == b""


@pytest.mark.dear
def test_observing_sees_hosts_that_are_added_and_removed(local: Cli, tmp_path: Path) -> None:
    told = tmp_path / "told"
    with fleet(local) as hosts, told.open("wb") as file:
        observer = local.start("observe", "--format", "jsonl", stdout=file)
        try:
            until(lambda: "observing" in told.read_text(), what="its first line")
            hosts.write_text("late\n")
            local.create("foo@late.fleet", *NONE)
            until(lambda: "agent_discovered" in told.read_text(), what="the agent on the new host")
            local("stop", "foo").ok()
            until(lambda: '"STOPPED"' in told.read_text(), what="its new state")
            hosts.write_text("")
            until(lambda: "agent_gone" in told.read_text(), what="the end of its host")
        finally:
            observer.kill()
            observer.communicate()
            hosts.write_text("late\n")


def test_observing_ends_with_its_reader(local: Cli) -> None:
    local.create("foo", *NONE, "--", "true")
    command = " ".join(local.argv("observe", "--discovery-only", "--format", "'{agent.name}'"))
    done = subprocess.run(
        ["sh", "-c", f"{command} | head -1"],
        env=local.env, cwd=local.repo, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("foo\n", "")


@pytest.mark.dear
def test_waiting_returns_the_state_reached(mngr: Cli) -> None:
    mngr.create("good", *NONE, "--", "true")
    mngr.create("bad", *NONE, "--", "sh", "-c", "exit 3")
    mngr.create("live", *NONE)
    some = mngr("wait", "good", "bad").fails(1, "1 of 2 failed: bad is FAILED (exit code 3)")
    assert some.out == "good DONE exit code 0\nbad FAILED exit code 3\n"
    mngr("wait", "bad", "live", "--any").fails(1, "mngr: bad is FAILED (exit code 3)")
    assert mngr("wait", "bad", "FAILED").ok().err == ""
    told = mngr("wait", "bad", "good", "DONE", "RUNNING").fails(1)
    assert told.err == "mngr: bad is FAILED (exit code 3); not DONE or RUNNING\n"
    assert sorted(told.out.splitlines()) == ["bad FAILED exit code 3", "good DONE exit code 0"]
    mngr("wait", "bad", "good", "--any", "STOPPED").fails(1, "bad is FAILED", "good is DONE")
    found = mngr("wait", "good", "FAILED", "bad", "DONE", "--format", "json").ok()
    ends = [(a["name"], a["exit_code"]) for a in found.json()["agents"]]
    assert ends == [("good", 0), ("bad", 3)]
    assert mngr("wait", "live", "RUNNING").ok().out.startswith("live RUNNING")
    assert mngr("wait", "live", "good", "--any").ok().out == "good DONE exit code 0\n"
    late = mngr("wait", "live", "--state", "done", "--timeout", "0.1s").fails(
        124, "live is RUNNING"
    )
    assert late.out == ""
    assert mngr("wait", "live", "nosuch").fails(4, "nosuch").out == ""
    mngr("wait", "live", "RUNING").fails(4, "RUNING", "did you mean the state 'RUNNING'?")
    mngr("wait", "good", "--state", "DOEN").fails(2, "DOEN", "DONE")
    mngr("wait", "good", "--any", "--all").fails(2, "--any")
    mngr("wait", "good", "--timeout", "soon").fails(2, "--timeout", "soon")
    mngr("wait", "DONE").fails(2, "no agent given")


def test_an_agent_that_vanishes_ends_the_waiting(local: Cli) -> None:
    local.create("foo", *NONE)
    local.create("bar", *NONE)
    alone = local.start("wait", "foo", "DONE")
    both = local.start("wait", "foo", "bar", "DONE", "STOPPED", "--state", "FAILED")
    until(lambda: has_looked(alone) and has_looked(both))
    local("destroy", "-f", "foo").ok()
    out, err = alone.communicate(timeout=15)
    assert (alone.returncode, out, b"foo no longer exists" in err) == (4, b"", True)
    local("stop", "bar").ok()
    out, err = both.communicate(timeout=15)
    assert (both.returncode, out, b"foo no longer exists" in err) == (
        3,
        b"bar STOPPED\n",
        True,
    )


def test_a_copy_on_the_host_of_another_agent_is_not_waited_for(local: Cli) -> None:
    with fleet(local, "one", "two"):
        local.create("foo@one", *NONE, "--", "true")
        local.create("bar@two", *NONE, "--", "true")
        copy = local.base / "fleet/two/agents" / local.agent("foo")["id"]
        shutil.copytree(local.base / "fleet/one/agents" / copy.name, copy)
        (copy / "exit").unlink()
        done = local("wait", "foo@one", "bar@two", "DONE", "--timeout", "20s").ok()
        assert done.out == "foo DONE exit code 0\nbar DONE exit code 0\n"


def test_waiting_notices_the_end_at_once(local: Cli) -> None:
    local.create("foo", "--", "sh", "-c", "until [ -e go ]; do sleep 0.02; done; exit 7")
    waiting = local.start("wait", "foo")
    until(lambda: has_looked(waiting))
    (local.work_dir("foo") / "go").touch()
    out, _ = waiting.communicate(timeout=15)
    ended = time.time()
    assert out == b"foo FAILED exit code 7\n"
    # 0.1 s on an idle machine; the bound only distinguishes polling from sleeping.
    assert ended - json.loads((local.state_dir("foo") / "exit").read_text())["time"] < 2


def test_nothing_goes_on_asking_a_host_after_a_wait(tmp_path: Path) -> None:
    """A program that uses the API may wait a thousand times."""
    cli = Cli(tmp_path, provider="bare")
    config = Config.load(str(cli.controller_home), str(cli.repo), cli.env, [])
    m = Mngr(config, load_registry(config))
    cli.create("foo", "--", "cat")
    before = threading.active_count()
    with pytest.raises(TimedOut):
        m.wait(m.list(), [State.DONE], timeout=0.5)
    seen = m.observe()
    assert next(seen)["type"] == "observing" and next(seen)["type"] == "agent_discovered"
    cli("rename", "foo", "bar").ok()
    assert next(seen)["type"] == "agent_state_changed" and threading.active_count() > before
    del seen
    until(lambda: threading.active_count() == before, what="the end of the threads")
    ended(cli)
