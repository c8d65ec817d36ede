"""A run with its own hosts, created by an engine: shared, replaced, and ended at its end."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import tmr
from mngr_tmr.journal.model import Outcome
from mngr_tmr.run import runs
from tests.support.cli import Cli, until
from tests.support.folders import on_folders
from tests.support.places import ended
from tests.support.robots import Robots

PATIENCE = 400
ANSWERS = {"add": Outcome.FIXED, "word": Outcome.BLOCKED, "idle": Outcome.UNCHANGED}


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Cli]:
    with on_folders(tmp_path) as cli:
        yield cli


def agents_by_host(folder: Path) -> Counter[str]:
    """Testing agents per host, as the hosts' own disks have it."""
    records = folder.glob("folders/*/.mngr/agents/*/agent.*.json")
    testers = {
        (path.parents[3].name, path.parent.name)
        for path in records
        if json.loads(path.read_bytes())["labels"].get("role") == "tester"
    }
    return Counter(host for host, _ in testers)


def text_of(journal: Path) -> str:
    return journal.read_text() if journal.exists() else ""


def test_a_run_brings_its_hosts_and_ends_them(folders: Cli, tmp_path: Path) -> None:
    robots = Robots(folders)
    robots.paths = tuple(f"tests/test_{name}.py" for name in ANSWERS)
    robots.hold()
    more = ("--provider", "folders", "--agents-per-host", "2", "-b", "colour=red")
    running = robots.start(*more, "--workers", "1")
    journal = folders.controller_home / "tmr" / "six" / "journal.jsonl"
    until(lambda: text_of(journal).count('"try_launched"') == 3, PATIENCE, "the agents")
    # On the first host is the bare agent that runs the tests, too.
    assert sorted(agents_by_host(tmp_path).values()) == [1, 2]
    made = [each for each in (tmp_path / "folders").iterdir() if each.name.startswith("tmr-six-")]
    assert len(made) == 2 and {(each / "colour").read_text() for each in made} == {"red\n"}
    # One host is lost with all that is on it: only its own agents are tried again.
    victims = [each for each in made if agents_by_host(tmp_path)[each.name] == 2]
    os.kill(int((victims[0] / "pid").read_text()), signal.SIGKILL)
    until(lambda: text_of(journal).count('"gathering"') == 2, PATIENCE, "two lost agents")
    robots.release()
    _, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0, err.decode()
    run = runs.load(folders.controller_home / "tmr" / "six")
    latest = {id.partition("-")[0]: task.latest for id, task in run.tasks.items()}
    assert {n: each.ended.outcome for n, each in latest.items() if each and each.ended} == ANSWERS
    assert sorted(len(task.tries) for task in run.tasks.values()) == [1, 2, 2]
    assert len(run.hosts) == 3 and all(host.seconds > 0 for host in run.hosts.values())
    assert all(host.agents > 0 for host in run.hosts.values())
    assert [each for each in (tmp_path / "folders").iterdir() if each.name[0] != "."] == []
    assert (
        folders("host", "audit", "--provider", "folders", "--format", "json").ok().json()["hosts"]
        == []
    )
    report = folders.controller_home / "tmr" / "six" / "report" / "index.html"
    assert "tmr-six-1 " in report.read_text()


def test_a_removed_run_names_its_hosts_and_no_run_uses_those_of_another(
    folders: Cli, tmp_path: Path
) -> None:
    robots = Robots(folders, name="fix-2")
    robots.paths = ("tests/test_word.py",)
    robots.hold()
    more = ("--provider", "folders", "--workers", "1")
    running = robots.start(*more)
    until(lambda: sum(agents_by_host(tmp_path).values()) == 1, PATIENCE, "the agent")
    running.kill()
    running.communicate(timeout=PATIENCE)
    robots.release()
    robots.name = "fix"
    _, err = robots.start(*more).communicate(timeout=PATIENCE)
    assert [*runs.load(folders.controller_home / "tmr" / "fix").hosts] == ["tmr-fix-1"], err
    assert (tmp_path / "folders" / "tmr-fix-2-1").exists()
    removed = folders("tmr", "rm", "fix-2").ok()
    assert removed.err.endswith("mngr host destroy tmr-fix-2-1\n")
    folders("host", "destroy", "tmr-fix-2-1").ok()
    assert folders("tmr", "rm", "fix").ok().err == ""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Cli]:
    """Yield a CLI of a provider that has two hosts and creates none."""
    cli = Cli(tmp_path, provider="bare")
    homes = (cli.home, cli.home.with_name("bare2"))
    homes[1].mkdir()
    yield cli
    for home in homes:
        cli.home = home
        ended(cli)


def test_a_run_spreads_over_the_hosts_that_exist_and_adopts_what_works_there(pair: Cli) -> None:
    robots = Robots(pair)
    robots.paths = ("tests/test_add.py", "tests/test_word.py")
    robots.hold()
    more = ("--provider", "bare", "--workers", "1")
    running = robots.start(*more)
    journal = pair.controller_home / "tmr" / "six" / "journal.jsonl"
    until(lambda: text_of(journal).count('"try_launched"') == 2, PATIENCE, "the agents")
    records = [*pair.base.glob("bare*/agents/*/agent.*.json")]
    assert Counter(each.parents[2].name for each in records).keys() == {"bare", "bare2"}
    running.kill()
    told = running.communicate(timeout=PATIENCE)[1].decode()
    assert "Agent type: command, on bare and bare2 (bare).\n" in told
    robots.release()
    pair("tmr", "resume", "six", timeout=PATIENCE).ok()
    assert len(robots.launches()) == 2
    run = runs.load(pair.controller_home / "tmr" / "six")
    latest = [task.latest for task in run.tasks.values()]
    outcomes = {each.ended.outcome for each in latest if each and each.ended}
    assert outcomes == {Outcome.FIXED, Outcome.BLOCKED}


@pytest.mark.soak
def test_a_run_that_was_killed_finds_its_hosts_again(folders: Cli, tmp_path: Path) -> None:
    robots = Robots(folders)
    robots.paths = ("tests/test_add.py", "tests/test_word.py")
    robots.hold()
    more = ("--provider", "folders", "--agents-per-host", "3", "--workers", "1")
    running = robots.start(*more)
    until(lambda: sum(agents_by_host(tmp_path).values()) == 2, PATIENCE, "the agents")
    journal = folders.controller_home / "tmr" / "six" / "journal.jsonl"
    until(lambda: text_of(journal).count('"try_launched"') == 2, PATIENCE, "their launch")
    running.kill()
    running.communicate(timeout=PATIENCE)
    robots.release()
    folders("tmr", "resume", "six", timeout=PATIENCE).ok()
    run = runs.load(folders.controller_home / "tmr" / "six")
    assert list(run.hosts) == ["tmr-six-1"] and len(robots.launches()) == 2
    assert run.hosts["tmr-six-1"].agents >= 2
    assert [each for each in (tmp_path / "folders").iterdir() if each.name[0] != "."] == []


@pytest.mark.soak
def test_a_hundred_agents_on_ten_hosts_of_which_one_dies(folders: Cli, tmp_path: Path) -> None:
    tmr.plant(str(folders.repo), folders.env, 100)
    hold = tmp_path / "hold"
    hold.touch()
    agent = ["sh", "-c", f"while [ -e {hold} ]; do sleep 0.5; done; {tmr.PUBLISH}"]
    running = folders.start(
        *("tmr", "run", "--name", "many", "--yes", "--repeats", "1", "--type", "command"),
        *("--provider", "folders", "--agents-per-host", "10", "--max-agents", "100"),
        *("--workers", "1", "--idle", "10m", *(f"--agent-arg={word}" for word in agent)),
    )
    folder = folders.controller_home / "tmr" / "many"
    journal = folder / "journal.jsonl"
    until(lambda: text_of(journal).count('"try_launched"') == 100, 1500, "a hundred agents")
    seats = agents_by_host(tmp_path)
    victim = next(host for host, count in seats.items() if count == 10)
    os.kill(int((tmp_path / "folders" / victim / "pid").read_text()), signal.SIGKILL)
    until(lambda: text_of(journal).count('"gathering"') == 10, 600, "the ten that were lost")
    hold.unlink()
    _, err = running.communicate(timeout=1500)
    assert running.returncode == 0, err.decode()
    run = runs.load(folder)
    latest = [task.latest for task in run.tasks.values() if task.latest]
    outcomes = Counter(each.ended.outcome for each in latest if each.ended)
    assert outcomes == {Outcome.UNCHANGED: 100}
    assert Counter(len(task.tries) for task in run.tasks.values()) == {1: 90, 2: 10}
    # The bare agent that runs the tests has a seat, too.
    assert sum(host.agents for host in run.hosts.values()) == 110 + 1
    assert run.hosts[victim].agents in (10, 11)
    assert [each for each in (tmp_path / "folders").iterdir() if each.name[0] != "."] == []
    audit = folders("host", "audit", "--provider", "folders", "--format", "json").ok().json()
    assert audit["hosts"] == []
