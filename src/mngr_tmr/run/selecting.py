"""Select the tests that get an agent, and those that wait for a canary. Pure."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.journal.model import Run, Task, TestRun
from mngr_tmr.run import clustering
from mngr_tmr.run.clustering import FailingTest, Lines

CHOICES = ("all", "problems", "failing", "weak", "flaky", "changed")
"""`weak` passes although its commands do nothing; `problems` is weak, flaky or failing."""
RESERVED = ("coverage", "trash")
"""Names of other folders next to those of the runs."""
WANT = {"failed": "fix", "flaky": "fix", "passed": "improve"}


@dataclass(frozen=True)
class Selection:
    tasks: tuple[Task, ...]
    left_out: Mapping[str, str]


def select(run: Run, changed: Collection[str] | None = None) -> Selection:
    """Select tests. `changed` are those that use a changed file; None if that is not known."""
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
    return Selection(tuple(_task(run, node_id) for node_id in chosen), left_out)


def grouped(
    run: Run,
    tasks: Sequence[Task],
    reached: Mapping[str, Lines],
    results: Mapping[str, TestRun] | None = None,
) -> dict[str, Json]:
    """Group tests that probably fail for one reason; all but the canary of a group wait.

    Return the fields of an event: the tasks, and the suspicious lines of each cluster. `results`
    are newer than the baseline: from the tip of the branch, in a later round.
    """
    broken = [
        failure(run, task, reached.get(task.node_id, frozenset()), results or {})
        for task in tasks
        if task.signature
    ]
    passing = [lines for test, lines in reached.items() if run.before(test).standing == "passed"]
    groups = clustering.clusters(broken, passing)
    if not run.options.canaries:
        groups = [(failure,) for failure in broken]
    passed = Counter(line for lines in passing for line in lines)
    first = {member.id: group for group in groups for member in group}
    signatures = {failure.id: failure.signature for failure in broken}
    suspects = {group[0].id: clustering.suspects(group, passed) for group in groups}
    rows = [_row(t, first.get(t.id, ()), signatures.get(t.id, ""), reached) for t in tasks]
    return {
        "tasks": rows,
        "suspects": {name: to_json(lines) for name, lines in suspects.items() if lines},
    }


def _row(
    task: Task, group: Sequence[FailingTest], signature: str, reached: Mapping[str, Lines]
) -> Json:
    canary = group[0].id if group else ""
    return {
        "task": task.id,
        "node_id": task.node_id,
        "want": task.want,
        "signature": signature,
        "canary": "" if canary == task.id else canary,
        "cluster": canary if len(group) > 1 else "",
        "reach": len(reached.get(task.node_id, ())),
    }


def failure(run: Run, task: Task, lines: Lines, results: Mapping[str, TestRun]) -> FailingTest:
    """Return how a test fails, by `results` or else by the baseline, and the lines it executes."""
    runs = run.before(task.node_id).runs
    first = next((each for each in runs if each.signature), TestRun("failed"))
    now = results.get(task.node_id, first)
    seconds = runs[0].seconds if runs else 0.0
    signature = now.signature or task.signature
    return FailingTest(task.id, task.node_id, signature, now.exception, seconds, lines)


def sample(run: Run, left_out: Mapping[str, str]) -> list[str]:
    """Return a random choice of passing tests, the same for the same seed."""
    passing = [n for n in left_out if run.before(n).standing == "passed"]
    generator = random.Random(run.options.seed)
    return generator.sample(sorted(passing), min(run.options.sample, len(passing)))


def _not_chosen(run: Run, node_id: str, changed: Collection[str] | None) -> str:
    standing = run.before(node_id).standing
    if standing == "skipped":
        return "skipped at the baseline"
    only, weak = run.options.only, node_id in run.weak
    if only == "failing" and standing == "passed":
        return "passes"
    if only == "weak" and not weak:
        return "fails when its commands do nothing"
    if only == "problems" and standing == "passed" and not weak:
        return "passes, and fails when its commands do nothing"
    if only == "flaky" and standing != "flaky":
        return "not flaky"
    if only == "changed" and changed is not None and node_id not in changed:
        return "does not use a changed file"
    return ""


def _task(run: Run, node_id: str) -> Task:
    baseline = run.before(node_id)
    want = WANT.get(baseline.standing, "improve")
    signature = baseline.signature if baseline.standing == "failed" else ""
    return Task(task_id(node_id), node_id, want, signature)


def task_id(node_id: str) -> str:
    """Return a short, unique name for agents, branches and folders."""
    last = node_id.rpartition("::")[2].removeprefix("test_")
    plain = plain_word(last, 20)
    mark = hashlib.sha256(node_id.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{plain}-{mark}" if plain else mark


def plain_word(text: str, length: int) -> str:
    """Return the text in lower-case letters and digits, with dashes for everything else."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:length].strip("-")


def run_name_problem(name: str) -> str:
    """Return what is wrong with the name of a run, which is part of the names of agents."""
    if name in RESERVED:
        return "this name is reserved"
    if re.fullmatch(r"[a-z0-9](?:[a-z0-9-]{0,18}[a-z0-9])?", name):
        return ""
    return "a run's name is at most 20 lower-case letters, digits and dashes"
