"""End-to-end tests: the overhead of a session, compared with the bare commands and other tools.

cram, prysk and bats are measured if they are on PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, interleaved, ratio
from mngr_e2e.artifacts import TestRecord
from mngr_e2e.environment import Directories, environment
from mngr_e2e.session import E2eSession
from mngr_e2e.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchmarks.run import Bench

NAP = "sleep 0.05"
WITH = """
import pytest
@pytest.mark.parametrize("number", range({many}))
def test_nap(e2e, number):
    assert e2e.run("{nap}", comment="a nap").exit_code == 0
"""
WITHOUT = """
import subprocess
import pytest
@pytest.mark.parametrize("number", range({many}))
def test_nap(number, tmp_path):
    assert subprocess.run("{nap}", shell=True, capture_output=True, cwd=tmp_path).returncode == 0
"""
TOGETHER = """
def test_naps(e2e):
    for number in range({many}):
        assert e2e.run("{nap}", comment="a nap").exit_code == 0
"""


def rows(bench: Bench) -> list[Row]:
    many = 60 if bench.rounds < 21 else 300
    return [one_command(bench), many_tests(bench, many), *peers(bench, many)]


def session(base: Path) -> E2eSession:
    place = Directories(base, base / "e2e-home", base / "e2e-work", base / "e2e-artifacts")
    env = environment(Settings(), place.make())
    return E2eSession(place, Settings(), TestRecord("bench", ""), env)


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def one_command(bench: Bench) -> Row:
    e2e = session(bench.base)
    command = f"{sys.executable} -c pass"

    def raw() -> object:
        return subprocess.run(command, shell=True, capture_output=True, env=e2e.env, cwd=e2e.work)

    def ours() -> object:
        return e2e.run(command)

    # In both orders, because the first command affects the caches that the second one finds.
    first, second, third, fourth = interleaved(
        bench.rounds * 3,
        lambda: timed(raw),
        lambda: timed(ours),
        lambda: timed(ours),
        lambda: timed(raw),
    )
    e2e.close()
    e2e.finish()
    name = "e2e.run of a bare interpreter / subprocess.run"
    return ratio(name, second + third, first + fourth, 1.2)


def pytest_run(bench: Bench, name: str, body: str, many: int, *options: str) -> float:
    folder = bench.base / name
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").write_text("[tool.mngr_e2e]\n")
    (folder / "test_nap.py").write_text(body.format(many=many, nap=NAP))
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return bench.run(argv, cwd=str(folder))


def many_tests(bench: Bench, many: int) -> Row:
    """Compare the same tests with and without sessions and artifacts."""
    without, ours = interleaved(
        1 if bench.rounds < 21 else 3,
        lambda: pytest_run(bench, "without", WITHOUT, many),
        lambda: pytest_run(bench, "with", WITH, many),
    )
    return ratio(f"{many} tests of 50 ms with artifacts / without", ours, without, 1.1)


def peers(bench: Bench, many: int) -> list[Row]:
    """Compare with other tools that run the same commands: at their fastest, and with one worker.

    cram and prysk run all commands of a file in one shell. mngr_e2e runs the same commands in one
    test, but each with its own process tree and time, so it may take a tenth longer.
    """
    found = [name for name in PEERS if shutil.which(name, path=bench.env["PATH"])]
    for name in PEERS.keys() - set(found):
        print(f"note: {name} is not installed, so there are no rows for it", file=sys.stderr)
    if not found:
        return []
    workers = min(4, os.cpu_count() or 1)
    best = pytest_run(bench, "beside", WITH, many, "-n", str(workers))
    separate = pytest_run(bench, "alone", WITH, many)
    together = pytest_run(bench, "together", TOGETHER, many)
    name = f"{many} naps"
    rows = []
    for peer in found:
        alone = PEERS[peer](bench, many, 1)
        fast = alone
        if peer == "bats" and parallel(bench):
            fast = min(alone, bats(bench, many, workers))
        ours, goal = (separate, 1.0) if peer == "bats" else (together, 1.1)
        rows.append(ratio(f"{name}, {workers} workers / {peer} at its best", best, fast, 1.0))
        rows.append(ratio(f"{name}, one worker / {peer}", ours, alone, goal))
    return rows


def parallel(bench: Bench) -> bool:
    """Return whether GNU parallel is installed, which bats requires for `--jobs`."""
    return shutil.which("parallel", path=bench.env["PATH"]) is not None


def in_cram_format(program: str) -> Callable[[Bench, int, int], float]:
    def run(bench: Bench, many: int, workers: int) -> float:
        path = bench.base / f"{program}.t"
        path.write_text(f"  $ {NAP}\n" * many)
        return bench.run([program, str(path)], cwd=str(bench.base))

    return run


def bats(bench: Bench, many: int, workers: int) -> float:
    path = bench.base / "nap.bats"
    path.write_text("".join(f'@test "nap {n}" {{\n  run {NAP}\n}}\n' for n in range(many)))
    jobs = ["--jobs", str(workers)] if workers > 1 else []
    return bench.run(["bats", *jobs, str(path)], cwd=str(bench.base))


PEERS = {"cram": in_cram_format("cram"), "prysk": in_cram_format("prysk"), "bats": bats}
