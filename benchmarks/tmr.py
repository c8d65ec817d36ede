"""Compare a run of many agents with the time of its slots, and time a very large simulated run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Row
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch.conductor import Conductor
from mngr_tmr.journal.fold import apply, fold
from mngr_tmr.journal.journal import Journal, read
from mngr_tmr.journal.model import Run
from mngr_tmr.run import runs
from mngr_tmr.run.options import Options
from tests.support.simulated import (
    Inline,
    SimulatedClock,
    SimulatedFleet,
    SimulatedInspector,
    SimulatedTrials,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchmarks.run import Bench

SLEEP = 5.0
MEMORY = 150
"""Megabytes that the orchestrator may have, whatever the number of agents."""
PUBLISH = '"$MNGR_AGENT_STATE_DIR/publish" --attempted none --summary well; exec sleep 1000'
TEST = (
    "import pytest\n\n\n@pytest.mark.parametrize('n', range({many}))\ndef test_it(n):\n    pass\n"
)
SETTINGS = f"""[tool.mngr_tmr]
pytest = "env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest"
"""


def rows(bench: Bench, quick: bool) -> list[Row]:
    many, slots = (24, 8) if quick else (300, 20)
    took, memory = sleepers(bench.repo, bench.env, many, slots)
    least = SLEEP * -(-many // slots)
    seconds = simulated(10_000)
    name = f"tmr, {many} agents of {SLEEP:g} s, {slots} slots"
    return [
        Row(f"{name} / slots' time", took * 1000, least * 1000, took / least, 1.15),
        Row("orchestrator of these, resident memory", 0.0, 0.0, memory, MEMORY, "MB"),
        Row("tmr, 10,000 simulated agents", seconds * 1000, 0.0, seconds, 60, "s"),
    ]


def sleepers(repo: str, env: dict[str, str], many: int, slots: int) -> tuple[float, float]:
    """Return the seconds from the first launch to the last end, and the peak memory in MB."""
    plant(repo, env, many)
    with subprocess.Popen(
        command(slots), cwd=repo, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        memory = most_memory(running)
    if running.returncode:
        raise RuntimeError(f"the run of {many} agents exited {running.returncode}")
    run = runs.load(Path(env["MNGR_HOST_DIR"], "tmr", "many"))
    tries = [each for task in run.tasks.values() for each in task.tries]
    assert len(tries) == many, f"{len(tries)} tries for {many} tasks"
    began, ended = min(t.intended for t in tries), max(t.ended_at for t in tries)
    return ended - began, memory


def plant(repo: str, env: dict[str, str], many: int) -> None:
    """Commit a project with this number of passing tests."""
    Path(repo, "tests").mkdir(exist_ok=True)
    Path(repo, "tests", "test_many.py").write_text(TEST.format(many=many))
    Path(repo, "pyproject.toml").write_text(SETTINGS)
    identity = ["-c", "user.name=b", "-c", "user.email=b@example.com"]
    for words in (["add", "-A"], [*identity, "commit", "-qm", "many tests"]):
        subprocess.run(["git", *words], cwd=repo, env=env, check=True)


def command(slots: int, seconds: float = SLEEP) -> list[str]:
    agent = ["sh", "-c", f"sleep {seconds:g}; {PUBLISH}"]
    return [
        *(sys.executable, "-m", "mngr", "tmr", "run", "--name", "many", "--yes", "--repeats", "1"),
        *("--type", "command", "--max-agents", str(slots), "--format", "json"),
        *(f"--agent-arg={word}" for word in agent),
    ]


def most_memory(running: subprocess.Popen[bytes]) -> float:
    """Return the peak memory, read while it runs: at its end, children would be included."""
    most = 0.0
    while running.poll() is None:
        most = max(most, peak(running.pid))
        time.sleep(0.1)
    return most


def peak(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(each.split()[1]) / 1024 for each in lines if each.startswith("VmHWM")), 0.0)


def simulated(many: int) -> float:
    """Return the seconds for this number of tasks, with simulated agents and a simulated clock."""
    began = time.perf_counter()
    ended = played(many)
    took = time.perf_counter() - began
    assert sum(1 for task in ended.tasks.values() if task.verdict) == many
    return took


def played(many: int) -> Run:
    """Return a run of this number of tasks, from its journal, once all have ended."""
    with tempfile.TemporaryDirectory() as base:
        folder, clock = Path(base, "run"), SimulatedClock()
        with Journal(folder, clock.now) as journal:
            run = Run()
            options = to_json(Options(max_agents=200))
            begin: dict[str, Json] = {"run": "r", "base": "b" * 40, "options": options}
            tasks: list[Json] = [
                {"task": f"t{n}", "node_id": f"t.py::t{n}", "want": "improve"} for n in range(many)
            ]
            for type, fields in (("run_started", begin), ("selected", {"tasks": tasks})):
                apply(run, journal.append(type, fields))
            fleet, inspector = SimulatedFleet(clock), SimulatedInspector()
            trials = SimulatedTrials()
            Conductor(run, journal, fleet, inspector, trials, clock, Inline()).conduct(1.0)
        return fold(read(folder))


if __name__ == "__main__":
    print(json.dumps({"seconds": simulated(int(os.environ.get("MANY", "10000")))}))
