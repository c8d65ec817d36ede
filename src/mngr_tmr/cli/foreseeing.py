"""What `mngr tmr run --dry-run` says: the agents that a run would launch, and what for."""

from __future__ import annotations

from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.journal.model import Run, Task
from mngr_tmr.run import forecasting
from mngr_tmr.run.forecasting import counted

SHOWN = 20
"""Tests that are listed for a person; JSON has them all."""


def row(run: Run) -> dict[str, Json]:
    first, waiting = _parted(run)
    return {
        "run": run.name,
        "repository": run.repository,
        "branch": f"tmr/{run.name}",
        "options": to_json(run.options),
        "tests": len(run.tests),
        "launches": [_task(run, task) for task in first],
        "waiting": [_task(run, task) for task in waiting],
        "forecast": to_json(run.forecast),
    }


def in_words(run: Run) -> str:
    """The agents that would start, the tests that would wait, the forecast and the branch."""
    first, waiting = _parted(run)
    if not first:
        return f"Would start no agent: of {counted(len(run.tests), 'test')}, none is selected."
    options = run.options
    lines = [f"Would start {counted(len(first), 'agent')} of type {options.agent_type}:"]
    lines += [f"  {task.want}  {task.node_id}" for task in first[:SHOWN]]
    lines += [f"  and {len(first) - SHOWN} more"] if len(first) > SHOWN else []
    if waiting:
        lines.append(
            f"{counted(len(waiting), 'test')} of the same clusters would wait for these, and get "
            "an agent only if they still fail."
        )
    lines += [forecasting.told(run), f"Branch: tmr/{run.name}"]
    return "\n".join(lines)


def _parted(run: Run) -> tuple[list[Task], list[Task]]:
    """Tasks that would get an agent at once, and those that wait for a canary."""
    tasks = list(run.tasks.values())
    return [each for each in tasks if not each.canary], [each for each in tasks if each.canary]


def _task(run: Run, task: Task) -> dict[str, Json]:
    known = run.baseline.get(task.node_id)
    standing = known.standing if known else ""
    why = task.signature
    return {"test": task.node_id, "want": task.want, "standing": standing, "failure": why}
