"""Many agents: how often hosts are read, how much memory it takes, and a kill in the middle."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import tmr
from mngr.api import Mngr, local_repository
from mngr.settings.layers import Config
from mngr_tmr.dispatch.agents import RealFleet, Stopper
from mngr_tmr.journal.model import Run
from mngr_tmr.run import runs
from mngr_tmr.run.pool import Pool
from tests.support.cli import Cli, until

PATIENCE = 3600


class Spawned:
    """How many programs this process has started."""

    def __init__(self) -> None:
        self.count = 0
        sys.addaudithook(self._heard)

    def _heard(self, event: str, args: tuple[object, ...]) -> None:
        self.count += event in ("os.posix_spawn", "subprocess.Popen", "os.fork")


def test_a_look_at_many_agents_costs_what_a_look_at_one_does(
    local: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNGR_HOST_DIR", str(local.home))
    config = Config.load(str(local.home), str(local.repo), local.env, [])
    api, run = Mngr(config), Run(name="r")
    repo = local_repository(str(local.repo))
    fleet = RealFleet(api, run, local.base, repo, lambda task, each: "", Pool(api, run))
    labels = ("--label", "tmr=r", "--label", "role=tester")
    local.create("tmr-r-0-1", *labels)
    spawned = Spawned()
    assert len(fleet.look()) == 1
    for_one = spawned.count
    for number in range(1, 6):
        local.create(f"tmr-r-{number}-1", *labels)
    before = spawned.count
    fleet.look()
    many = spawned.count
    assert len(fleet.look()) == 6
    assert spawned.count - many <= for_one
    assert many > before, "nothing was counted"


def test_agents_that_end_together_are_stopped_together(
    local: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNGR_HOST_DIR", str(local.home))
    api = Mngr(Config.load(str(local.home), str(local.repo), local.env, []))
    for number in range(7):
        local.create(f"a{number}")
    first, *others = api.list()
    stopper, spawned = Stopper(api), Spawned()
    stopper.stop(first)
    for_one = spawned.count
    with ThreadPoolExecutor(len(others)) as pool:
        list(pool.map(stopper.stop, others))
    assert 0 < spawned.count - for_one < len(others) * for_one * 0.8
    assert {str(each.state) for each in api.list()} == {"STOPPED"}


def test_a_thousand_tasks_on_paper_all_come_to_an_end() -> None:
    """How fast ten thousand are is for the benchmark to say."""
    ended = [task.id for task in tmr.played(1000).tasks.values() if task.verdict]
    assert ended == [f"t{number}" for number in range(1000)]


@pytest.mark.soak
def test_three_hundred_agents_and_a_kill_in_the_middle(local: Cli) -> None:
    tmr.plant(str(local.repo), local.env, 300)
    command = tmr.command(slots=20)
    folder = local.home / "tmr" / "many"
    options = {"cwd": local.repo, "env": local.env, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    until(lambda: ended(folder) >= 150 or running.poll() is not None, PATIENCE, "half of them")
    most = tmr.peak(running.pid)
    running.kill()
    running.wait()
    assert ended(folder) < 300
    again = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)  # type: ignore[call-overload]
    until(lambda: ended(folder) >= 299 or again.poll() is not None, PATIENCE, "the other half")
    most = max(most, tmr.peak(again.pid))
    assert again.wait(PATIENCE) == 0
    print(f"{most:.0f} MB")
    assert most < tmr.MEMORY
    run = runs.load(folder)
    assert {len(task.tries) for task in run.tasks.values()} == {1}
    assert run.status == "nothing to do"
    assert local("list", "--format", "json", timeout=300).ok().json()["agents"] == []


def ended(folder: Path) -> int:
    try:
        return (folder / "journal.jsonl").read_bytes().count(b'"type":"try_ended"')
    except FileNotFoundError:
        return 0
