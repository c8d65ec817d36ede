"""Measure the speed of mngr, as ratios to the raw limit measured in the same run.

    python benchmarks/run.py [--quick] [--json FILE] [PART ...]

Each row is printed as it is measured.

MNGR_BENCH_PEER names a similar program; its `--version` and `list` are timed too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import e2e, modal, remote, snapshot, tmr, transfer, view
from benchmarks.measure import HEADER, Row, as_json, interleaved, line, once, percentile, ratio
from mngr.hosts import tmux

PYTHON = sys.executable
MNGR = [str(Path(sys.executable).with_name("mngr"))]
COUNT_SPAWNS = """
import sys
spawned = []
events = ("os.posix_spawn", "subprocess.Popen", "os.fork")
sys.addaudithook(lambda event, args: event in events and spawned.append(args))
from mngr.cli.app.main import main
main(["list"])
print(len(spawned), file=sys.stderr)
"""


class Bench:
    """A temporary home, a repository, and two tmux servers."""

    def __init__(self, base: Path, quick: bool) -> None:
        self.base = base
        self.rounds = 7 if quick else 21
        self.repo = str(base / "repo")
        self.env = {
            **{
                key: os.environ[key]
                for key in ("PATH", "HOME", "LANG", "TERM")
                if key in os.environ
            },
            "MNGR_HOST_DIR": str(base / "home"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        self.raw_socket = str(base / "raw.sock")
        self.socket = tmux.socket_path(self.env["MNGR_HOST_DIR"], os.getuid())
        self.count = 0
        self._make_repository()

    def _make_repository(self) -> None:
        identity = ["-c", "user.name=b", "-c", "user.email=b@example.com"]
        self.run(["git", "init", "-q", self.repo], cwd="/")
        for number in range(50):
            Path(self.repo, f"file{number}.txt").write_text("line\n" * 50)
        self.run(["git", "add", "-A"])
        self.run(["git", *identity, "commit", "-qm", "files"])

    def run(self, argv: list[str], cwd: str = "") -> float:
        return once(argv, self.env, cwd or self.repo)

    def bare(self) -> float:
        return self.run([PYTHON, "-c", "pass"])

    def mngr(self, *args: str) -> float:
        return self.run([*MNGR, *args])

    def raw_create(self) -> float:
        """Return the time that any tool requires: for a worktree and a session."""
        self.count += 1
        path = str(self.base / f"raw{self.count}")
        add = ["git", "worktree", "add", "-q", "-b", f"raw/{self.count}", path]
        session = ["tmux", "-S", self.raw_socket, "-f", "/dev/null", "new-session", "-d"]
        named = ["-s", f"raw{self.count}", "-c", path, "sleep", "10000"]
        return self.run(add) + self.run([*session, *named])

    def create(self) -> float:
        self.count += 1
        return self.mngr("create", f"one-{self.count}", "--no-connect", "--", "sleep", "10000")

    def life(self) -> Iterator[Callable[[], float]]:
        """Yield the steps in the life of one agent, each to be timed separately."""
        self.count += 1
        name = f"life-{self.count}"
        program = ("--no-connect", "--", "sleep", "10000")
        yield lambda: self.mngr("create", name, *program)
        yield lambda: self.mngr("exec", name, "--", "true")
        yield lambda: self.mngr("stop", name)
        yield lambda: self.mngr("start", name)
        yield lambda: self.mngr("list")
        yield lambda: self.mngr("destroy", "--force", name)

    def batch(self, many: int, prefix: str) -> float:
        lines = [f'{{"name":"{prefix}-{n}","args":["sleep","10000"]}}\n' for n in range(many)]
        path = self.base / "batch.jsonl"
        path.write_text("".join(lines))
        return self.mngr("create", "--batch", str(path))

    @property
    def agents(self) -> int:
        folder = Path(self.env["MNGR_HOST_DIR"], "agents")
        return len(list(folder.iterdir())) if folder.exists() else 0

    def end_all(self) -> tuple[float, float]:
        """Return the time to stop all running agents, and to destroy the same number of them."""
        stopped = self.mngr("stop", "--all")
        names = [f"gone-{number}" for number in range(self.agents)]
        self.mngr("destroy", "--force", *self.names)
        self.batch(len(names), "gone")
        return stopped, self.mngr("destroy", "--force", *names)

    @property
    def names(self) -> list[str]:
        listed = subprocess.run(
            [*MNGR, "list", "--ids"], env=self.env, capture_output=True, text=True, check=True
        )
        return listed.stdout.split()

    def fill(self, total: int) -> None:
        """Create agents until there are `total`."""
        if self.agents < total:
            self.batch(total - self.agents, f"fill{total}")

    def exit_to_wait(self, trials: int) -> list[float]:
        """Return the times from the end of a program to the return of `mngr wait`."""
        latencies = []
        for number in range(trials):
            fifo = self.base / f"fifo{number}"
            os.mkfifo(fifo)
            stamp = self.base / f"stamp{number}"
            script = f"read x < {fifo}; date +%s.%N > {stamp}"
            self.mngr(
                "create",
                f"w-{number}",
                "--no-connect",
                "--transfer",
                "none",
                "--",
                "sh",
                "-c",
                script,
            )
            waiting = subprocess.Popen(
                [*MNGR, "wait", f"w-{number}"],
                env=self.env,
                cwd=self.repo,
                stdout=subprocess.DEVNULL,
            )
            time.sleep(0.25)  # until `wait` polls
            fifo.write_text("go\n")
            waiting.wait(30)
            latencies.append(time.time() - float(stamp.read_text()))
        return latencies

    def close(self) -> None:
        for socket in (self.raw_socket, self.socket):
            subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
        Path(self.socket).unlink(missing_ok=True)


MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""The directory in which single commands are timed: on a disk, creating a file can take longer than
starting Python. The part for many agents measures `create` on the disk."""

COMMANDS = {"create": 6, "exec": 5, "stop": 6, "start": 6, "list": 5, "destroy": 6}
"""The limit for each command of an agent's life, in starts of a bare interpreter."""


def single(bench: Bench) -> Iterator[Row]:
    """Return the rows of single commands on one agent."""
    bare, version = interleaved(bench.rounds, bench.bare, lambda: bench.mngr("--version"))
    yield ratio("mngr --version / bare interpreter", version, bare, 3)
    timed: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(bench.rounds):
        for name, step in zip(COMMANDS, bench.life(), strict=True):
            timed[name].append((step(), bench.bare()))
    for name, limit in COMMANDS.items():
        ours, bare = (median(each) for each in zip(*timed[name], strict=True))
        yield ratio(f"mngr {name} / bare interpreter", ours, bare, limit)


def measure(bench: Bench, quick: bool) -> Iterator[Row]:
    rounds = bench.rounds
    bare, raw, ours = interleaved(max(5, rounds // 2), bench.bare, bench.raw_create, bench.create)
    yield ratio("create / interpreter+worktree+session", ours, bare + raw, 4)

    many = 30 if quick else 100
    raw_many = sum(bench.raw_create() for _ in range(many))
    batch = bench.batch(many, "batch")
    yield ratio(f"{many} creates by --batch / {many} raw", batch, raw_many, 2)

    bench.fill(100)
    yield listing(bench, 5)
    yield spawns(bench)
    yield exit_latencies(bench, 20 if quick else 100)
    if not quick:
        bench.fill(300)
        yield listing(bench, 8)
    yield from peer(bench)
    count = bench.agents
    stopped, destroyed = bench.end_all()
    yield ratio(f"destroy of {count} agents / stop of them", destroyed, stopped, 2)


def listing(bench: Bench, limit: float) -> Row:
    bare, listed = interleaved(bench.rounds, bench.bare, lambda: bench.mngr("list"))
    return ratio(f"list, {bench.agents} live agents / interpreter", listed, bare, limit)


def spawns(bench: Bench) -> Row:
    done = subprocess.run(
        [PYTHON, "-c", COUNT_SPAWNS], env=bench.env, cwd=bench.repo, capture_output=True, check=True
    )
    return Row("subprocesses of one list", 0.0, 0.0, int(done.stderr.split()[-1]), 2, "")


def exit_latencies(bench: Bench, trials: int) -> Row:
    found = bench.exit_to_wait(trials)
    worst = percentile(found, 0.99)
    median = percentile(found, 0.5)
    return Row(
        "exit of a program -> wait returns, p99",
        worst * 1000,
        median * 1000,
        worst * 1000,
        250,
        "ms",
    )


def peer(bench: Bench) -> list[Row]:
    name = os.environ.get("MNGR_BENCH_PEER", "")
    if not name or not shutil.which(name):
        return []
    bare, version, listed = interleaved(
        3, bench.bare, lambda: bench.run([name, "--version"]), lambda: bench.run([name, "list"])
    )
    return [
        ratio(f"{name} --version / bare interpreter", version, bare, 3),
        ratio(f"{name} list / bare interpreter", listed, bare, 5),
    ]


def in_a_new_world(
    part: Callable[[Bench], Iterable[Row]], quick: bool, folder: str | None
) -> Iterator[Row]:
    base = Path(tempfile.mkdtemp(prefix="mngr-bench-", dir=folder))
    bench = Bench(base, quick)
    try:
        yield from part(bench)
    finally:
        bench.close()
        shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and agents")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    parser.add_argument("part", nargs="*", help="single, transfer, snapshot, …; default: all")
    args = parser.parse_args()
    # Each part has its own home, because hundreds of agents would slow down the next part.
    parts: dict[str, Callable[[Bench], Iterable[Row]]] = {
        "single": single,
        "transfer": transfer.rows,
        "remote": remote.rows,
        "modal": modal.rows,
        "snapshot": snapshot.rows,
        "e2e": e2e.rows,
        "view": view.rows,
        "tmr": lambda bench: tmr.rows(bench, args.quick),
        "many": lambda bench: measure(bench, args.quick),
    }
    rows = []
    print(HEADER, flush=True)
    for name in args.part or parts:
        for row in in_a_new_world(parts[name], args.quick, MEMORY if name == "single" else None):
            print(line(row), flush=True)
            rows.append(row)
    print(as_json(rows))
    if args.json:
        Path(args.json).write_text(as_json(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
