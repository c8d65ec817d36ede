"""A disk that fills in the middle of a run: the run stops, and no agent is paid for twice."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import Cli, until
from tests.support.robots import Robots

PATIENCE = 300
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")


@contextmanager
def small(place: Path) -> Iterator[None]:
    """Put a directory with its files on a separate disk of 60 megabytes."""
    kept = place.with_name(f"{place.name}-before")
    place.mkdir(exist_ok=True)
    shutil.copytree(place, kept)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "mngr-test", str(place)], check=True)
    try:
        shutil.copytree(kept, place, dirs_exist_ok=True)
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path) -> Path:
    filler = place / "filler"
    with open(filler, "wb", buffering=0) as file:
        while shutil.disk_usage(place).free:
            file.write(b"x" * 4096)
    return filler


def at_work(robots: Robots) -> subprocess.Popen[bytes]:
    """Start the run; its four agents are at work until `release`."""
    robots.hold()
    running = robots.start("--only", "failing")
    journal = robots.run_folder / "journal.jsonl"
    until(lambda: robots.lines() and journal.read_text().count('"try_launched"') == 4, PATIENCE)
    return running


def stopped(running: subprocess.Popen[bytes], place: Path) -> bool:
    """Check that the run stopped on the full disk, with one line that says how to continue it."""
    _, err = running.communicate(timeout=PATIENCE)
    line = err.decode().strip().splitlines()[-1]
    assert line.startswith("mngr: the run six stopped: No space left on device"), line
    assert f"({place}" in line and line.endswith("continue it with `mngr tmr resume six`"), line
    return running.returncode == 1


LAUNCHES = {"add": ["1"], "sub": ["1"], "mul": ["1", "2"], "word": ["1"]}
"""`mul` always dies once."""


def launches(robots: Robots) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in robots.launches():
        task, number = line.split()
        found.setdefault(task.partition("-")[0], []).append(number)
    return found


def test_commits_that_a_full_disk_cannot_take_are_fetched_when_the_run_goes_on(local: Cli) -> None:
    with small(local.repo):
        robots = Robots(local)
        running = at_work(robots)
        filler = fill(local.repo)
        robots.release()
        assert stopped(running, local.repo)
        filler.unlink()
        local("tmr", "resume", "six", timeout=PATIENCE).ok()
        assert launches(robots) == LAUNCHES
        assert len(robots.branch()) == 4


def test_a_run_whose_home_is_full_says_how_to_continue_it(local: Cli) -> None:
    with small(local.home):
        running = at_work(robots := Robots(local))
        filler = fill(local.home)
        robots.release()
        assert stopped(running, local.home)
        filler.unlink()
        local("tmr", "resume", "six", timeout=PATIENCE).ok()
        local.close()
