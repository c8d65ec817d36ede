"""`mngr tmr list`, `show`, `watch` and `report`: show runs, from their journals alone."""

from __future__ import annotations

import time
from pathlib import Path

from mngr.cli.app.output import one, rows
from mngr.cli.app.parser import Namespace
from mngr.errors import UsageError
from mngr.model.events import iso
from mngr.model.struct import Json
from mngr_tmr.cli.progress import Progress
from mngr_tmr.integrate import messages, ranking
from mngr_tmr.journal.journal import is_at_work
from mngr_tmr.journal.model import Run, Task
from mngr_tmr.run import forecast, publishing, runs
from mngr_tmr.run.words import counted, few, reason_of

COLUMNS = ["task", "want", "ending", "reason", "test", "agent", "tries"]


def chosen(args: Namespace) -> Path:
    """Return the folder of the run that was named, or of the newest run."""
    if len(args.words) > 1:
        raise UsageError(f"expected one run, not {' '.join(args.words)!r}", "see `mngr tmr list`")
    return runs.find(args.config.home, args.words[0] if args.words else args.name)


def list_runs(args: Namespace) -> int:
    if args.words:
        raise UsageError("`mngr tmr list` lists all runs", f"see `mngr tmr show {args.words[0]}`")
    found = [runs.load(runs.root(args.config.home) / name) for name in runs.names(args.config.home)]
    table = [_row(args, run) for run in found]
    columns = ["run", "status", "tests", "tasks", "commits", "tokens", "begun"]
    rows(args, table, columns, "runs", empty="No runs found", fields=columns)
    return 0


def _row(args: Namespace, run: Run) -> dict[str, Json]:
    return {
        "run": run.name,
        "status": _status(args, run),
        "tests": len(run.tests),
        "tasks": len(run.tasks),
        "commits": len(run.picks),
        "tokens": run.spent.tokens,
        "begun": iso(run.started)[:19] + "Z",
    }


def _status(args: Namespace, run: Run) -> str:
    if is_at_work(runs.root(args.config.home) / run.name):
        return publishing.paused_in_words(run) or "at work"
    return run.status or "interrupted"


def show(args: Namespace) -> int:
    folder = chosen(args)
    run = runs.load(folder)
    if args.format == "json":
        tasks: list[Json] = [_task_row(task) for task in run.tasks.values()]
        one(args, {**publishing.summary(run, folder), "tasks": tasks}, "")
        return 0
    if args.format == "human":
        _print_run(args, run)
    else:
        rows(args, [_task_row(task) for task in run.tasks.values()], [], fields=COLUMNS)
    return 0


def _print_run(args: Namespace, run: Run) -> None:
    """Print the result of the run, the result of each test, and the usage."""
    one(args, {}, verdict(run, _status(args, run)))
    empty = "No tests were selected" if run.status else "No tests have been selected yet"
    rows(args, _folded(run), ["ending", "test", "reason"], empty=empty)
    told = [*publishing.held_in_words(run), *forecast.in_words(run)]
    told += filter(None, [messages.gist(run)])
    if run.picks:
        commits = counted(len(run.picks), "commit")
        branch = f"{run.result_branch} ({commits})" if run.result_branch else f"{commits} so far"
        told.append(f"Branch: {branch}")
    if told:
        one(args, {}, "\n".join(told))


def verdict(run: Run, status: str) -> str:
    """Return one sentence with the status of a run and the number of tests per result."""
    became = publishing.in_words(run) if run.status else f"is {status}"
    endings = ", ".join(f"{number} {word}" for word, number in ranking.counts(run).items())
    return f"The run {run.name} {became}" + (f" ({endings})." if endings else ".")


def _folded(run: Run) -> list[dict[str, Json]]:
    """Return one row for all tests without an agent that have the same result and reason."""
    return [
        {**_task_row(tasks[0]), "test": few([task.node_id for task in tasks], 1)}
        for tasks in publishing.alike(run.tasks.values())
    ]


def _task_row(task: Task) -> dict[str, Json]:
    return {
        "task": task.id,
        "want": task.want,
        "ending": ranking.ending_of(task),
        "reason": " ".join(reason_of(task).split())[:200],
        "test": task.node_id,
        "agent": task.latest.agent_name if task.latest else "",
        "tries": len(task.tries),
    }


def watch(args: Namespace) -> int:
    """Show the progress of a run until its process ends."""
    folder = chosen(args)
    with Progress(args, runs.load(folder), acts=False) as progress:
        while True:
            at_work = is_at_work(folder)
            run = runs.load(folder)
            progress.show(run)
            if not at_work:
                break
            time.sleep(0.5)
    one(args, publishing.summary(run, folder), publishing.closing_words(run, ""))
    return 0


def report(args: Namespace) -> int:
    from mngr_view.writing import write

    folder = chosen(args)
    page = write(folder, Path(args.out) if args.out else folder / "report")
    one(args, {"run": folder.name, "page": str(page)}, str(page))
    return 0
