"""kill -9 of the orchestrator, at any moment: what it had begun is finished, once, and the same."""

from __future__ import annotations

import fcntl
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.journal.journal import read
from mngr_tmr.journal.model import Outcome
from mngr_tmr.run.options import Options
from tests.mngr_tmr.test_conductor import Stage
from tests.support.cli import Cli, lives, until
from tests.support.places import ended
from tests.support.robots import Robots

PATIENCE = 600
"""Seconds; a quiet machine needs a hundredth of it."""
LINES = 46
"""Of the journal of an undisturbed run; kills come at any of them."""

SEED = int(os.environ.get("MNGR_SOAK_SEED", "0")) or random.SystemRandom().randrange(1 << 32)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return the result of an uninterrupted run, made once for all processes of this session."""
    base = tmp_path_factory.mktemp("undisturbed")
    common = base.parent.parent if os.environ.get("PYTEST_XDIST_WORKER") else base.parent
    kept = common / "undisturbed.json"
    with (common / "undisturbed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            cli = Cli(base / "world")
            robots = Robots(cli)
            cli(*robots.words, "--yes", timeout=PATIENCE).ok()
            kept.write_text(json.dumps(left_by(robots)))
            ended(cli)
    found: dict[str, object] = json.loads(kept.read_text())
    return found


def left_by(robots: Robots) -> dict[str, object]:
    return {
        "branch": robots.branch(),
        "agents": robots.agents(),
        "launches": sorted(robots.launches()),
        "processes": len(robots.cli.processes()),
    }


@pytest.fixture
def robots(local: Cli) -> Iterator[Robots]:
    robots = Robots(local)
    yield robots
    robots.release()


def killed_in_between(robots: Robots, dice: random.Random, words: tuple[str, ...]) -> bool:
    """Start or continue the run and kill it at a random journal line; return False if it ended."""
    line, delay = dice.randrange(LINES), dice.random() ** 3
    running = robots.cli.start(*words, stdout=-3, stderr=-3)
    until(lambda: robots.lines() > line or running.poll() is not None, PATIENCE, f"line {line}")
    moment = time.monotonic() + delay
    until(lambda: time.monotonic() > moment, PATIENCE)
    over = running.poll() is not None
    running.kill()
    running.wait()
    return not over


def survives(robots: Robots, seed: int, undisturbed: dict[str, object]) -> None:
    dice = random.Random(seed)
    begin = (*robots.words, "--yes")
    kills = sum(killed_in_between(robots, dice, begin) for _ in range(dice.randint(1, 3)))
    resume = ("tmr", "resume", robots.name, "--yes") if robots.run.name else begin
    done = robots.cli(*resume, timeout=PATIENCE)
    told = f"seed {seed}, {kills} kills"
    assert done.code == 0, f"{told}: {done.err}"
    until(lambda: not robots.cli.processes(), 60, f"{told}: processes are left")
    assert left_by(robots) == undisturbed, told
    tries = Counter(
        (event["task"], event["try"])
        for event in read(robots.run_folder)
        if event["type"] == "try_intended"
    )
    assert set(tries.values()) == {1}, told


def test_a_killed_run_ends_as_if_nothing_had_happened(
    robots: Robots, undisturbed: dict[str, object]
) -> None:
    survives(robots, 1, undisturbed)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(50))
def test_many_killed_runs_end_as_if_nothing_had_happened(
    robots: Robots, undisturbed: dict[str, object], number: int
) -> None:
    print(f"MNGR_SOAK_SEED={SEED}")
    survives(robots, SEED + number, undisturbed)


@pytest.mark.soak
def test_a_check_that_was_under_way_is_ended_before_the_run_goes_on(robots: Robots) -> None:
    mark = robots.hang()
    running = robots.start("--only", "failing")
    until(lambda: mark.exists() and mark.read_text(), PATIENCE, "a check hangs")
    running.kill()
    running.communicate()
    pid = int(mark.read_text())
    assert lives(pid), "nothing was under way"
    robots.cli("tmr", "resume", "--yes", timeout=PATIENCE).ok()
    assert not lives(pid)
    assert not [name for name in robots.agents() if "bench" in name]


def test_a_run_killed_before_its_first_line_can_only_begin_anew(local: Cli) -> None:
    folder = local.home / "tmr" / "early"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_bytes(b'{"type": "run_st')
    for verb in ("resume", "integrate"):
        local("tmr", verb, "early").fails(4, "killed before it started", "--name early")
    assert Path(folder, "journal.jsonl").read_bytes() == b'{"type": "run_st'


# on paper


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "run", Options(max_agents=2))
    stage.tasks("a", "b", "c")
    stage.note("try_intended", task="a", **{"try": 1}, agent_name="tmr-r-a-1", base="b" * 40)
    yield stage
    stage.close()


def test_what_an_agent_was_judged_to_be_outlives_a_kill_after_it_was_stopped(stage: Stage) -> None:
    """Stopped, it looks like one that died, and would be tried again."""
    stage.note("try_launched", task="a", **{"try": 1}, agent_id="agent-a")
    stage.note("gathering", task="a", **{"try": 1}, outcome="no result", reason="idle")
    stage.fleet._now["tmr-r-a-1"] = Sighting("STOPPED", "stopped")
    run = stage.conduct()
    assert [each.ended and each.ended.outcome for each in run.tasks["a"].tries] == ["no result"]


def test_a_cancelled_run_that_is_resumed_launches_nothing_and_ends(stage: Stage) -> None:
    """Also not what it was about to launch when it was killed."""
    stage.note("control", action="cancel")
    run = stage.conduct()
    assert stage.fleet.launched == []
    assert stage.outcome("a") == Outcome.CANCELLED
    assert not run.tasks["b"].tries


def test_a_cancel_reaches_agents_whose_launch_was_under_way(stage: Stage) -> None:
    conductor = stage.conductor()
    conductor.step()  # the launches are done, but their events are not journalled yet
    stage.orders.append({"action": "cancel"})
    conductor.conduct(1.0)
    assert {stage.outcome(each) for each in ("a", "b")} == {Outcome.CANCELLED}
    assert len(stage.fleet.launched) == 2
