"""Two commands on one agent, each stopped at a step until the other has got to its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.audit import agent_id_of
from tests.support.cli import PAUSE_AT, Cli, until


def paused(mngr: Cli, step: str, gate: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command that pauses at this step until the gate file exists."""
    running = mngr.start(*words, env=mngr.environment({PAUSE_AT: f"{step}:{gate}"}))
    until(Path(f"{gate}.there").exists, 60, f"{words} is at {step}")
    return running


def forge_started(mngr: Cli) -> None:
    """What a process of the agent can write: that the launch which was just recorded has begun."""
    record = mngr.record("foo")
    forged = {"launch": record["launch"], "pid": 1, "time": record["launch_time"]}
    (mngr.state_dir("foo") / "started").write_text(json.dumps(forged))


@pytest.mark.parametrize("forged", [False, True], ids=["honest", "forged"])
def test_nothing_runs_of_an_agent_that_was_destroyed_while_it_was_started(
    mngr: Cli, tmp_path: Path, forged: bool
) -> None:
    mngr.create("foo")
    agent = mngr.record("foo")["id"]
    mngr("stop", "foo").ok()
    start = paused(mngr, "launch_recorded", tmp_path / "start", "start", "foo")
    if forged:
        forge_started(mngr)
    destroy = paused(mngr, "processes_ended", tmp_path / "destroy", "destroy", "-f", "foo")
    (tmp_path / "start").touch()
    start.communicate(timeout=60)
    (tmp_path / "destroy").touch()
    destroy.communicate(timeout=60)
    assert mngr("list", "--format", "json").ok().json()["agents"] == []
    assert [pid for pid in mngr.processes() if agent_id_of(pid) == agent] == []


def test_a_start_that_comes_after_the_destroy_starts_nothing(mngr: Cli, tmp_path: Path) -> None:
    mngr.create("foo")
    agent = mngr.record("foo")["id"]
    mngr("stop", "foo").ok()
    start = paused(mngr, "launch_recorded", tmp_path / "start", "start", "foo")
    mngr("destroy", "-f", "foo").ok()
    (tmp_path / "start").touch()
    _, told = start.communicate(timeout=60)
    assert start.returncode == 4 and b"foo was destroyed in the meantime" in told
    assert [pid for pid in mngr.processes() if agent_id_of(pid) == agent] == []
    mngr("restore", "foo").ok()
    assert mngr.state("foo") == "STOPPED"
