"""The script that holds a host: when it ends, why, and what it takes with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from mngr.hosts.engines import holding
from tests.support.cli import until

SHELLS = [name for name in ("dash", "bash", "busybox") if shutil.which(name)]


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    return ["busybox", "sh"] if request.param == "busybox" else [request.param]


def hold(
    shell: list[str], home: Path, lifetime: float | None, idle: float | None
) -> subprocess.Popen[bytes]:
    words = holding.words("host-x", lifetime, idle)[1:]
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    return subprocess.Popen([*shell, *words], env=env, start_new_session=True)


def test_a_host_is_held_until_its_time_is_over(shell: list[str], tmp_path: Path) -> None:
    began = time.time()
    assert holding.ended(hold(shell, tmp_path, 2, None).wait(60)) == "reached its --max-age"
    assert time.time() - began > 1
    # It was started again, but its time counts from the first start.
    assert hold(shell, tmp_path, 2, None).wait(60) == holding.AGED


def test_a_host_is_held_while_its_agents_do_something(shell: list[str], tmp_path: Path) -> None:
    folder = tmp_path / ".mngr" / "agents" / "agent-x"
    folder.mkdir(parents=True)
    (tmp_path / ".mngr" / "tmux.socket").write_text("/nonexistent\n")
    holder, began = hold(shell, tmp_path, None, 3), time.monotonic()
    while time.monotonic() - began < 5:  # as an agent that writes down what it does
        (folder / "signals").touch()
        os.utime(folder / "signals")
        list(folder.iterdir())
        assert holder.poll() is None
        time.sleep(0.1)
    assert holding.ended(holder.wait(60)) == "idle for its --idle-timeout"


def test_its_agents_processes_end_with_it(shell: list[str], tmp_path: Path) -> None:
    home = tmp_path / ".mngr"
    script = "trap '' TERM HUP; while :; do sleep 1; done"
    mine = subprocess.Popen(["sh", "-c", script], env=os.environ | {"MNGR_HOST_DIR": str(home)})
    other = subprocess.Popen(["sleep", "100"], env=os.environ | {"MNGR_HOST_DIR": f"{home}2"})
    holder = hold(shell, tmp_path, None, None)
    until(lambda: list(home.glob(".seen.*")), what="the holder's start")
    try:
        holder.terminate()
        assert holder.wait(60) == 0
        assert mine.wait(10) == -9 and other.poll() is None
    finally:
        for each in (mine, other):
            each.kill()
            each.wait()


def test_a_clock_that_is_corrected_is_no_idle_time(shell: list[str], tmp_path: Path) -> None:
    date, late = tmp_path / "date", tmp_path / "late"
    script = f'#!/bin/sh\n[ ! -e {late} ] || set -- -d \'2 hours\' "$@"\nexec /bin/date "$@"\n'
    date.write_text(script)
    date.chmod(0o755)
    words = holding.words("host-x", None, 100)[1:]
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    holder = subprocess.Popen([*shell, *words], env=env, start_new_session=True)

    def looks() -> list[int]:
        return sorted(path.stat().st_mtime_ns for path in tmp_path.glob(".mngr/.seen.*"))

    try:
        until(lambda: len(looks()) == 2, what="the first look")
        late.touch()
        for _ in range(3):
            before = looks()
            until(lambda before=before: looks() != before or holder.poll() is not None)  # type: ignore[misc]
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait()
