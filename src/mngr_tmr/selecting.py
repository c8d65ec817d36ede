"""Which tests get an agent, and which wait for another's answer first. Pure."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mngr_tmr.model import Baseline, Run, Task

CHOICES = ("all", "needy", "failing", "weak", "flaky", "changed")
"""`weak` passes although its commands do nothing; `needy` is weak, flaky or failing."""
WANT = {"failed": "fix", "flaky": "fix", "passed": "improve"}


@dataclass(frozen=True)
class Selection:
    tasks: tuple[Task, ...]
    left_out: Mapping[str, str]


def select(run: Run, changed: Collection[str] | None = None) -> Selection:
    """`changed` are the tests that a coverage map connects with what was changed; None: no map."""
    chosen: list[str] = []
    left_out: dict[str, str] = {}
    for node_id in run.tests:
        why = _not_chosen(run, node_id, changed)
        if why:
            left_out[node_id] = why
        else:
            chosen.append(node_id)
    for node_id in sample(run, left_out):
        del left_out[node_id]
        chosen.append(node_id)
    tasks = [_task(run, node_id) for node_id in chosen]
    return Selection(tuple(_with_canaries(run, tasks)), left_out)


def sample(run: Run, left_out: Mapping[str, str]) -> list[str]:
    """Some that would get no agent, the same ones for the same seed."""
    passing = [n for n in left_out if run.baseline.get(n, Baseline()).standing == "passed"]
    generator = random.Random(run.options.seed)
    return generator.sample(sorted(passing), min(run.options.sample, len(passing)))


def _not_chosen(run: Run, node_id: str, changed: Collection[str] | None) -> str:
    standing = run.baseline.get(node_id, Baseline()).standing
    if standing == "skipped":
        return "skipped at the baseline"
    only, weak = run.options.only, node_id in run.weak
    if only == "failing" and standing == "passed":
        return "passes"
    if only == "weak" and not weak:
        return "fails when its commands do nothing"
    if only == "needy" and standing == "passed" and not weak:
        return "passes, and fails when its commands do nothing"
    if only == "flaky" and standing != "flaky":
        return "not flaky"
    if only == "changed" and changed is not None and node_id not in changed:
        return "not touched by what changed"
    return ""


def _task(run: Run, node_id: str) -> Task:
    baseline = run.baseline.get(node_id, Baseline())
    want = WANT.get(baseline.standing, "improve")
    signature = baseline.signature if baseline.standing == "failed" else ""
    return Task(task_id(node_id), node_id, want, signature)


def _with_canaries(run: Run, tasks: list[Task]) -> list[Task]:
    """Of those that fail in the same way the first goes ahead."""
    first: dict[str, str] = {}
    for task in tasks:
        if task.signature and run.options.canaries:
            ahead = first.setdefault(task.signature, task.id)
            task.canary = ahead if ahead != task.id else ""
    return tasks


def task_id(node_id: str) -> str:
    """Short, plain and unique: agents, branches and folders are named by it."""
    last = node_id.rpartition("::")[2].removeprefix("test_")
    plain = re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")[:20].strip("-")
    mark = hashlib.sha256(node_id.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{plain}-{mark}" if plain else mark


def run_name_problem(name: str) -> str:
    """Names of runs stand in names of agents, which have at most 63 characters."""
    if re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?", name):
        return ""
    return "a run's name is at most 20 small letters, digits and dashes"
