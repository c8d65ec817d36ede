"""Modal sandboxes on the test service: the overhead of the bridge, and a run of many agents.

The service and the sandboxes are processes of this machine, so times are upper limits.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks import tmr
from benchmarks.measure import Row, interleaved, once, ratio
from mngr_tmr.journal.model import Run
from mngr_tmr.run import runs
from tests.support.cli import Cli
from tests.support.cloud import running
from tests.support.cloud.running import Cloud, owner
from tests.support.places import on_cloud

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchmarks.run import Bench

LIMIT = 25
"""Requests per second that Modal answers."""
ENTER = Path(__file__).parents[1] / "src" / "mngr" / "hosts" / "modal" / "enter.py"


@dataclass
class Figures:
    """The results of a run of the pipeline with one sandbox per running agent."""

    run: Run
    seconds: float
    memory: float
    """Peak memory of the orchestrator, in megabytes."""
    requests: list[tuple[float, str]]
    """Requests to the account, without those sent to the machine of a sandbox."""

    def most_in_a_second(self) -> int:
        times = [time for time, _ in self.requests]
        return max(sum(first <= each < first + 1 for each in times) for first in times)

    def methods(self) -> Counter[str]:
        return Counter(method for _, method in self.requests)


def pipeline(cloud: Cloud, cli: Cli, many: int, slots: int) -> Figures:
    tmr.plant(str(cli.repo), cli.env, many)
    agent = ["sh", "-c", f"sleep 1; {tmr.PUBLISH}"]
    began = cli.start(
        *("tmr", "run", "--name", "many", "--yes", "--repeats", "1", "--type", "command"),
        *("--provider", "modal", "--agents-per-host", "1", "--max-agents", str(slots)),
        *("--workers", "1", "--idle", "30m", *(f"--agent-arg={word}" for word in agent)),
        stdout=None, stderr=None,
    )  # fmt: skip
    memory = tmr.most_memory(began)
    assert began.wait(60) == 0
    run = runs.load(cli.controller_home / "tmr" / "many")
    own = ("TaskExec", "TaskSnapshot")
    asked = [each for each in cloud.requests(owner(cli)) if not each[1].startswith(own)]
    tries = [each for task in run.tasks.values() for each in task.tries]
    seconds = max(t.ended_at for t in tries) - min(t.intended for t in tries)
    return Figures(run, seconds, memory, asked)


def rows(bench: Bench) -> list[Row]:
    """Return the rows; none if this machine cannot run the test service."""
    if running.why_not():
        return []
    quick = bench.rounds < 21
    base = Path(tempfile.mkdtemp(prefix="mngr-bench-"))
    try:
        with running.cloud(base / "cloud", Path("/")) as cloud, on_cloud(cloud, base / "w") as cli:
            many, slots = (8, 4) if quick else (200, 16)
            return [*_calls(cli, bench), *_run(pipeline(cloud, cli, many, slots), many)]
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _calls(cli: Cli, bench: Bench) -> list[Row]:
    cli("host", "create", "box", "--provider", "modal").ok()
    cli.create("foo@box")
    hosts = cli("host", "list", "--format", "json").ok().json()["hosts"]
    handle = next(each["id"] for each in hosts if each["name"] == "box")
    python = cli.argv()[0]
    enter = [python, "-I", "-S", str(ENTER), str(cli.controller_home), handle, "pipe", "true"]
    entered, bare = interleaved(
        bench.rounds,
        lambda: once(enter, cli.env, str(cli.repo)),
        lambda: once([python, "-I", "-S", "-c", "pass"], cli.env, str(cli.repo)),
    )
    ran, raw = interleaved(
        bench.rounds,
        lambda: once(cli.argv("exec", "foo", "true"), cli.env, str(cli.repo)),
        lambda: once(enter, cli.env, str(cli.repo)),
    )
    cli("host", "destroy", "box", "--force").ok()
    return [
        ratio("modal, a command in a sandbox / bare interpreter", entered, bare, 12),
        ratio("modal, mngr exec / a command in a sandbox", ran, raw, 8),
    ]


def _run(found: Figures, many: int) -> list[Row]:
    name = f"modal, tmr with {many} agents"
    each = found.seconds / many
    asked = len(found.requests) / many
    return [
        Row(f"{name}, per agent", found.seconds * 1000, 0.0, each, 4, "s"),
        Row(f"{name}, requests per agent", 0.0, 0.0, asked, 8, ""),
        Row(f"{name}, most requests in a second", 0.0, 0.0, found.most_in_a_second(), LIMIT, ""),
        Row(f"{name}, resident memory", 0.0, 0.0, found.memory, 150, "MB"),
    ]
