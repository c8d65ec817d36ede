"""Agents that cannot be launched: the task records it, and is retried if appropriate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_tmr.dispatch.judging import Sighting, judge
from mngr_tmr.journal.model import Outcome, Run, Try
from mngr_tmr.run import runs
from mngr_tmr.run.options import Options
from tests.support.cli import Cli, until
from tests.support.places import ended
from tests.support.robots import Robots

PATIENCE = 300


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Cli]:
    """A world whose agents live on a host that refuses some of them."""
    cli = Cli(tmp_path, provider="bare")
    cli.env["MNGR__PLUGINS__MODULES"] = '["tests.support.refusing"]'
    yield cli
    ended(cli)


def text_of(folder: Path) -> str:
    journal = folder / "journal.jsonl"
    return journal.read_text() if journal.exists() else ""


def ends(run: Run) -> set[tuple[tuple[Outcome, str], ...]]:
    """How the tries of each task ended, with their reasons."""
    tries = [[each.ended for each in task.tries] for task in run.tasks.values()]
    return {tuple((e.outcome, e.reason) for e in each if e is not None) for each in tries}


def test_a_program_that_cannot_start_is_a_failed_launch_and_tried_once_more(local: Cli) -> None:
    robots = Robots(local)
    words = [word for word in robots.words if not word.startswith("--agent-arg")]
    more = ("--only", "failing", "--agent-arg=/no/such/program", "--yes", "--format", "json")
    done = local(*words, *more, timeout=PATIENCE)
    done.fails(1, "the run six failed: no change was accepted")
    assert json.loads(done.out)["counts"] == {"launch failed": 4}
    reason = "command not found: /no/such/program; it is not on localhost"
    failed = (Outcome.LAUNCH_FAILED, reason)
    assert ends(robots.run) == {(failed, failed)}
    assert "launch failed" in local("tmr", "show", "--format", "{task} {ending}\\n").ok().out


def test_a_host_that_refuses_is_asked_again(far: Cli) -> None:
    robots = Robots(far)
    robots.paths = ("tests/test_add.py", "tests/test_word.py")
    far(*robots.words, "--provider", "bare", "--yes", timeout=PATIENCE).ok()
    run = runs.load(far.controller_home / "tmr" / "six")
    refused = (Outcome.LAUNCH_FAILED, "host bare: no room for another agent")
    blocked = (Outcome.BLOCKED, "there is no dictionary")
    assert ends(run) == {(refused, (Outcome.FIXED, "")), (refused, blocked)}
    assert len(robots.launches()) == 2


def test_agents_of_a_host_that_is_silent_for_a_while_are_not_given_up(far: Cli) -> None:
    robots = Robots(far)
    robots.paths = ("tests/test_add.py",)
    robots.hold()
    running = robots.start("--provider", "bare")
    folder = far.controller_home / "tmr" / "six"
    until(lambda: '"try_launched"' in text_of(folder), PATIENCE, "an agent")
    silent = Path(f"{far.home}.silent")
    silent.touch()
    until(lambda: silent.read_text().count("asked") > 3, PATIENCE, "looks in vain")
    silent.unlink()
    robots.release()
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err
    run = runs.load(folder)
    refused = (Outcome.LAUNCH_FAILED, "host bare: no room for another agent")
    assert ends(run) == {(refused, (Outcome.FIXED, ""))}


def test_a_host_that_stays_silent_is_given_up() -> None:
    each, silent = Try(1, "a", "b", 0.0, launched=1000.0), Sighting("UNREACHABLE", since=1000.0)
    assert judge(each, silent, 1299.0, Options()).kind == "wait"
    assert judge(each, silent, 1301.0, Options()).outcome is Outcome.DIED
