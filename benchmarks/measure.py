"""Time actions in turns, so that the load of the machine affects all of them equally."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass


@dataclass
class Row:
    """One figure, the raw limit it is measured against, and the goal."""

    name: str
    ours_ms: float
    raw_ms: float
    ratio: float
    goal: float
    unit: str = "x"

    @property
    def met(self) -> bool:
        return self.ratio <= self.goal


def once(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{argv} exited {done.returncode}: {done.stderr.decode()}")
    return took


def interleaved(rounds: int, *actions: Callable[[], float]) -> list[float]:
    """Return the median time of each action; every round runs all of them."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for taken, action in zip(times, actions, strict=True):
            taken.append(action())
    return [statistics.median(taken) for taken in times]


def ratio(name: str, ours: float, raw: float, goal: float) -> Row:
    return Row(name, ours * 1000, raw * 1000, ours / raw, goal)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * len(ordered)))]


HEADER = f"{'measure':<54} {'ours':>10} {'raw':>10} {'ratio':>9} {'goal':>8}"


def line(row: Row) -> str:
    """Return a row of the table whose first line is HEADER."""
    figure = f"{row.ratio:.2f}x" if row.unit == "x" else f"{row.ratio:.0f} {row.unit}"
    goal = f"{row.goal:g}x" if row.unit == "x" else f"{row.goal:g} {row.unit}"
    mark = "" if row.met else "  missed"
    times = f"{row.ours_ms:>7.1f} ms {row.raw_ms:>7.1f} ms"
    return f"{row.name:<54} {times} {figure:>9} {goal:>8}{mark}"


def as_json(rows: Sequence[Row]) -> str:
    return json.dumps(
        {"cpus": os.cpu_count(), "rows": [{**asdict(row), "met": row.met} for row in rows]},
        indent=2,
    )
