"""How fast mngr is, as ratios against the raw limit measured in the same run.

    python benchmarks/run.py [--quick] [--json FILE]

MNGR_BENCH_PEER names another command of the same shape; its --version and list are timed too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import e2e, snapshot, tmr, transfer, view
from benchmarks.measure import Row, as_json, interleaved, once, percentile, ratio, table
from mngr import tmux

PYTHON = sys.executable
MNGR = [str(Path(sys.executable).with_name("mngr"))]
COUNT_SPAWNS = """
import sys
spawned = []
events = ("os.posix_spawn", "subprocess.Popen", "os.fork")
sys.addaudithook(lambda event, args: event in events and spawned.append(args))
from mngr.cli.main import main
main(["list"])
print(len(spawned), file=sys.stderr)
"""


class Bench:
    """A throw-away home, repository and pair of tmux servers."""

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
        """What any tool must do: a worktree and a session."""
        self.count += 1
        path = str(self.base / f"raw{self.count}")
        add = ["git", "worktree", "add", "-q", "-b", f"raw/{self.count}", path]
        session = ["tmux", "-S", self.raw_socket, "-f", "/dev/null", "new-session", "-d"]
        named = ["-s", f"raw{self.count}", "-c", path, "sleep", "10000"]
        return self.run(add) + self.run([*session, *named])

    def create(self) -> float:
        self.count += 1
        return self.mngr("create", f"one-{self.count}", "--no-connect", "--", "sleep", "10000")

    def destroy(self) -> float:
        """Of the agent that was created last, which runs."""
        return self.mngr("destroy", f"one-{self.count}")

    def batch(self, many: int, prefix: str) -> float:
        lines = [f'{{"name":"{prefix}-{n}","args":["sleep","10000"]}}\n' for n in range(many)]
        path = self.base / "batch.jsonl"
        path.write_text("".join(lines))
        return self.mngr("create", "--batch", str(path))

    @property
    def agents(self) -> int:
        folder = Path(self.env["MNGR_HOST_DIR"], "agents")
        return len(list(folder.iterdir())) if folder.exists() else 0

    def fill(self, total: int) -> None:
        """More agents until there are `total`."""
        if self.agents < total:
            self.batch(total - self.agents, f"fill{total}")

    def exit_to_wait(self, trials: int) -> list[float]:
        """From the moment a program ends to the moment `mngr wait` has returned."""
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
            time.sleep(0.25)  # until it polls
            fifo.write_text("go\n")
            waiting.wait(30)
            latencies.append(time.time() - float(stamp.read_text()))
        return latencies

    def close(self) -> None:
        for socket in (self.raw_socket, self.socket):
            subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
        Path(self.socket).unlink(missing_ok=True)


def measure(bench: Bench, quick: bool) -> list[Row]:
    rounds = bench.rounds
    bare, version = interleaved(rounds, bench.bare, lambda: bench.mngr("--version"))
    rows = [ratio("mngr --version / bare interpreter", version, bare, 3)]

    each = (bench.bare, bench.raw_create, bench.create, bench.destroy)
    bare, raw, ours, destroyed = interleaved(max(5, rounds // 2), *each)
    rows.append(ratio("create / interpreter+worktree+session", ours, bare + raw, 4))
    rows.append(ratio("destroy of a running agent / interpreter", destroyed, bare, 6))

    many = 30 if quick else 100
    raw_many = sum(bench.raw_create() for _ in range(many))
    batch = bench.batch(many, "batch")
    rows.append(ratio(f"{many} creates by --batch / {many} raw", batch, raw_many, 2))

    bench.fill(100)
    bare, listed = interleaved(rounds, bench.bare, lambda: bench.mngr("list"))
    rows.append(ratio(f"list, {bench.agents} live agents / interpreter", listed, bare, 5))
    rows.append(spawns(bench))

    latencies = exit_latencies(bench, 20 if quick else 100)
    rows.append(latencies)

    if not quick:
        bench.fill(300)
        bare, listed = interleaved(rounds, bench.bare, lambda: bench.mngr("list"))
        rows.append(ratio(f"list, {bench.agents} live agents / interpreter", listed, bare, 8))
    return rows + peer(bench)


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


def in_a_new_world(part: Callable[[Bench], list[Row]], quick: bool) -> list[Row]:
    base = Path(tempfile.mkdtemp(prefix="mngr-bench-"))
    bench = Bench(base, quick)
    try:
        return part(bench)
    finally:
        bench.close()
        shutil.rmtree(base, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and agents")
    parser.add_argument("--json", metavar="FILE", help="also write the figures there")
    args = parser.parse_args()
    # Each in a world of its own: three hundred agents would weigh on whatever comes after them.
    parts = (
        transfer.rows,
        snapshot.rows,
        e2e.rows,
        view.rows,
        lambda bench: tmr.rows(bench, args.quick),
        lambda bench: measure(bench, args.quick),
    )
    rows = [row for part in parts for row in in_a_new_world(part, args.quick)]
    print(table(rows))
    print(as_json(rows))
    if args.json:
        Path(args.json).write_text(as_json(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
