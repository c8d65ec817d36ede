"""An agent over its limit is ended, keeps its work and says why; limits change while it runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from tests.cli.test_usage import spend
from tests.support.cli import Cli, until
from tests.support.scribe import know, scribe

NONE = ("--transfer", "none")


def ended(cli: Cli, name: str) -> str:
    """The reason, once it has ended by a limit."""
    cli("wait", name, "FAILED", "--timeout", "60").ok()
    agent = cli.agent(name)
    assert agent["exit_code"] == 124
    return str(agent["state_reason"])


def watcher(cli: Cli, name: str) -> int:
    """Its process."""
    file = cli.state_dir(name) / "watcher"
    until(file.exists, timeout=30)
    return int(file.read_text().split()[1])


def test_over_its_tokens_it_ends_and_goes_on_when_it_may(mngr: Cli) -> None:
    scribe(mngr, "foo", "--max-tokens", "20k")
    work = mngr.work_dir("foo")
    (work / "draft").write_text("precious")
    spend(mngr, "foo", "claude-sonnet-4-5", 20_000, 0, 0, 0)
    spend(mngr, "foo", "gpt-5", 100, 10, 200, 2)
    assert ended(mngr, "foo") == "over its limit of 20000 tokens (20312 used)"
    assert (work / "draft").read_text() == "precious"
    assert mngr("limit", "foo", "--max-tokens", "1M", "--format", "json").ok().json()["agents"] == [
        {
            "id": mngr.agent("foo")["id"],
            "name": "foo",
            "old": {"timeout": None, "max_cost": None, "max_tokens": 20_000},
            "new": {"timeout": None, "max_cost": None, "max_tokens": 1_000_000},
        }
    ]
    mngr("start", "foo").ok()
    first = watcher(mngr, "foo")
    until(lambda: mngr.state("foo") == "WAITING", timeout=30)
    # A new limit is a new watcher, and the old one leaves.
    done = mngr("limit", "foo", "--max-cost", "0.5").ok()
    assert done.out == "foo: 1000000 tokens -> $0.5, 1000000 tokens\n"
    until(lambda: watcher(mngr, "foo") != first, timeout=30)
    until(lambda: not Path(f"/proc/{first}").exists(), timeout=30)
    spend(mngr, "foo", "gpt-5", 0, 60_000, 0, 0)
    assert ended(mngr, "foo") == "over its limit of $0.5 ($0.6603 used)"
    assert (work / "draft").exists()


def test_a_limit_can_come_change_and_go_while_it_runs(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    mngr.create("bar", *NONE, "--timeout", "1h")
    assert not (mngr.state_dir("foo") / "limits").exists()
    mngr("limit", "foo", "--timeout", "1h").ok()
    mngr("limit", "bar", "--timeout", "none").ok()
    gone = watcher(mngr, "bar")
    until(lambda: not Path(f"/proc/{gone}").exists(), timeout=30)
    assert mngr("limit", "foo", "--format", "{timeout} {max_cost}").ok().out == "3600.0 \n"
    assert mngr("limit", "bar", "--format", "{timeout}").ok().out == "\n"
    assert mngr("limit", "foo").ok().out.splitlines()[1].split() == ["foo", "1h"]
    assert "foo: 1h -> 1.5 s" in mngr("limit", "foo", "--timeout", "1.5s").ok().out
    assert ended(mngr, "foo") == "timed out after 1.5 s"
    assert mngr.state("bar") == "RUNNING"


def test_only_processes_of_the_agent_end_whatever_it_says_of_its_launcher(local: Cli) -> None:
    local.create("foo", *NONE)
    started = local.state_dir("foo") / "started"
    words = ["sh", "-c", "sleep 1000 & echo; wait"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        [child] = Path(f"/proc/{other.pid}/task/{other.pid}/children").read_text().split()
        started.write_text(json.dumps(json.loads(started.read_text()) | {"pid": other.pid}))
        local("limit", "foo", "--timeout", "1s").ok()
        assert ended(local, "foo") == "timed out after 1 s"
        assert Path(f"/proc/{child}/cmdline").read_bytes() == b"sleep\x001000\x00"
        os.killpg(other.pid, signal.SIGKILL)


def test_in_the_foreground_the_reason_is_told(local: Cli) -> None:
    done = local("create", "foo", "--foreground", "--timeout", "1s", "--", "sleep", "1000")
    done.fails(124, "foo: timed out after 1 s")


def test_whoever_watches_steps_in_where_the_watcher_is_gone(local: Cli) -> None:
    scribe(local, "foo", *NONE, "--max-cost", "$1")
    os.kill(watcher(local, "foo"), signal.SIGKILL)
    spend(local, "foo", "a-model-without-a-price", 0, 100_000, 0, 0)
    # Counted as the dearest model there is: 180 dollars for a million.
    assert ended(local, "foo") == "over its limit of $1 ($18 used)"


def test_limits_come_from_templates_and_batches_and_go_to_clones(local: Cli) -> None:
    know(local)
    local("config", "set", "create_templates.cheap.max_cost", "2.5").ok()
    line = '{"name": "foo", "type": "scribe", "max_tokens": 90000, "template": ["cheap"]}\n'
    local("create", "--batch", "-", input=line).ok()
    local("clone", "foo", "bar", "--max-tokens", "1k").ok()
    shown = local("limit", "foo", "bar", "--format", "{name} {max_cost} {max_tokens}").ok().out
    assert shown == "foo 2.5 90000\nbar 2.5 1000\n"
    dry = local("limit", "foo", "--timeout", "5m", "--dry-run").ok().out
    assert dry == "foo: $2.5, 90000 tokens -> 5m, $2.5, 90000 tokens (dry run)\n"
    assert "\nfoo            2.5       90000\n" in local("limit", "foo", "bar").ok().out


def test_what_cannot_be_kept_or_makes_no_sense_is_refused(local: Cli) -> None:
    local.create("plain", *NONE)
    for given in (["--max-cost", "1"], ["--max-tokens", "1000"]):
        refused = local("create", "foo", "--no-connect", *given, "--", "sleep", "1000")
        refused.fails(2, "type 'command' do not report their usage", "--timeout")
        local("limit", "plain", *given).fails(2, "do not report their usage")
    for option, bad in (
        ("--max-cost", "0"),
        ("--max-cost", "-1"),
        ("--max-cost", "much"),
        ("--max-tokens", "0k"),
        ("--max-tokens", "1e9"),
        ("--timeout", "0"),
    ):
        local("limit", "plain", option, bad).fails(2, option)
        local("create", option, bad, "--", "true").fails(2, option)
    local("create", "--max-cost", "none", "--", "true").fails(2, "--max-cost")
    local("limit", "plan", "--timeout", "1h").fails(4, "plan")
    local("limit").fails(2, "no agent given")
    assert local("list", "--format", "{name}").out == "plain\n"
