"""The end of a run: status, summary, report, pull request, and which agents are destroyed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mngr.api import Mngr, Repo, local_repository
from mngr.cli.app.output import clean, warn
from mngr.errors import MissingProgram, MngrError
from mngr.model.state import State
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.integrate import messages, ranking
from mngr_tmr.journal.model import Ruling, Run, Task
from mngr_tmr.run import costs, forecast
from mngr_tmr.run.words import counted, few

WORDS = {
    "done": "is done",
    "nothing to do": "found nothing to change",
    "failed": "failed: no change was accepted",
    "cancelled": "was cancelled",
}


def status(run: Run) -> str:
    """Return the status of a run that ends now, by counting its results."""
    if run.cancelled:
        return "cancelled"
    if run.picks:
        return "done"
    well = not run.collect_errors and {*ranking.counts(run)} <= {*ranking.WELL}
    return "nothing to do" if well else "failed"


def tidy(api: Mngr, run: Run) -> None:
    """Destroy agents whose work is on the branch or was not required; all others are kept."""
    settled = (Ruling.ACCEPTED, Ruling.UNCHANGED)
    evicted = {each.task for each in run.evictions}
    done = {
        each.agent_name
        for task in run.tasks.values()
        for each in task.tries
        if each.verdict is not None
        and (each.verdict.ruling in settled or (task.included and each is task.held))
        and task.id not in evicted
    }
    listed = [agent for agent in api.list() if agent.name in done]
    mine = [agent for agent in listed if agent.state is not State.UNREACHABLE]
    if mine:
        destroy = api.destroy_many(mine, drop_branch=True)
        for agent in mine:
            destroy(agent)


def in_words(run: Run) -> str:
    """Return the result of a run as a phrase."""
    well = sum(n for word, n in ranking.counts(run).items() if word in ranking.WELL)
    left = len(run.tasks) - well
    if run.status == "failed" and well and left:
        return f"made no commit: {left} of {len(run.tasks)} tests require your help"
    if run.status == "failed" and not left and run.collect_errors:
        return f"failed: {counted(len(run.collect_errors), 'file')} could not be collected"
    return WORDS.get(run.status, run.status)


def paused_in_words(run: Run) -> str:
    """Return `paused by hand`, or `paused: ` and the reason; "" if the run is not paused."""
    return f"paused: {run.paused}" if run.paused and run.paused_until else run.paused


def summary(run: Run, folder: Path) -> dict[str, Json]:
    return {
        "run": run.name,
        "status": run.status,
        "branch": run.result_branch,
        "commits": len(run.picks),
        "counts": dict(ranking.counts(run)),
        "held": [
            {"test": task.node_id, "flags": [*verdict.flags], "ref": ranking.held_ref(run, task)}
            for task, verdict in ranking.held(run)
        ],
        "agents": run.tries,
        "tokens": run.spent.tokens,
        "cost": run.spent.cost,
        "minutes": round(costs.minutes(run), 2),
        "forecast": to_json(run.forecast),
        "folder": str(folder),
    }


def closing_words(run: Run, report: str) -> str:
    lines = [f"The run {run.name} {in_words(run)}.", *filter(None, [messages.gist(run)])]
    lines += [f"  {number} {word}" for word, number in ranking.counts(run).items()]
    for pick in run.picks:
        lines.append(f"  {pick.commit[:12]} {pick.subject}")
    lines += [f"  {each}" for each in forecast.uncollected(run)]
    for tasks in alike(run.tasks.values()):
        ending, names = ranking.ending_of(tasks[0]), few([task.node_id for task in tasks], 1)
        if ending == "passes":
            lines.append(f"  passes with {tasks[0].passes_with[:12]}: {names}")
        elif ending == "blocked":
            lines.append(f"  blocked: {names}: {messages.why_blocked(tasks[0])}")
    lines += held_in_words(run)
    lines += forecast.in_words(run)
    if run.branch_reason:
        lines.append(f"The branch is {run.result_branch}, because {run.branch_reason}.")
    if run.picks:
        lines.append(f"Branch: {run.result_branch}")
        lines.append(_next_step(run))
    if report:
        lines.append(f"Report: {report}")
    return "\n".join(lines)


def held_in_words(run: Run) -> list[str]:
    """Return each change held for review, with its flagged lines and the command to apply it."""
    lines: list[str] = []
    for task, verdict in ranking.held(run):
        lines.append(f"  held for review: {task.node_id}")
        lines += [f"    {clean(each)}" for each in verdict.flags]
        lines.append(f"    To apply it: {messages.taking(run, task)}")
    return lines


def _next_step(run: Run) -> str:
    """Return the command that pushes the branch, or merges it if there is no remote."""
    found = local_repository(run.repository).attempt("remote").stdout.decode().split()
    if not found:
        return f"To merge it: git merge {run.result_branch}"
    remote = "origin" if "origin" in found else found[0]
    return f"To publish it: git push -u {remote} {run.result_branch}"


def alike(tasks: Iterable[Task]) -> list[list[Task]]:
    """Group the tests without an agent by result and reason."""
    groups: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        own = "" if task.skipped or task.passes_with else task.id
        key = (ranking.ending_of(task), task.passes_with or task.skipped, own)
        groups.setdefault(key, []).append(task)
    return list(groups.values())


def write_report(folder: Path) -> str:
    """Write the report and return its path; a failure to write it is only a warning."""
    from mngr_view.writing import write

    try:
        return str(write(folder, folder / "report"))
    except (OSError, MngrError) as error:
        warn(f"the report could not be written: {error}")
        return ""


def pull_request(repo: Repo, folder: Path, run: Run) -> None:
    """Push the branch and open a pull request with gh, with the credentials of the user."""
    # With the user's hooks, because git-lfs requires one.
    pushed = repo.replace(flags=()).attempt("push", "-u", "origin", run.result_branch)
    pushed.raise_if_failed(f"{run.result_branch} could not be pushed")
    title, _ = messages.pull_request(run)
    body = str(folder / "pull-request.md")
    words = ["gh", "pr", "create", "--head", run.result_branch, "--title", title]
    try:
        done = repo.run(["env", "-C", repo.path, *words, "--body-file", body], timeout=120)
    except FileNotFoundError:
        hint = f"open the pull request yourself; its text is in {body}"
        raise MissingProgram("gh is not installed", hint) from None
    done.raise_if_failed("gh could not open the pull request")
