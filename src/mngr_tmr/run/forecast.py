"""The forecast of a run, shown before its first agent and compared with the actual usage."""

from __future__ import annotations

from mngr.cli.app.output import clean
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.journal.model import Ended, Run, Task
from mngr_tmr.run import costs, runs
from mngr_tmr.run.costs import Forecast
from mngr_tmr.run.words import counted, span

FEWEST, MOST = 20_000, 50_000
"""Tokens per agent, if there are no earlier agents of its type."""
NOT_KNOWN = "not known"
SHOWN = 20
"""Maximum number of tests in the text of a dry run; JSON has them all."""


def forecast(run: Run, home: str, *, metered: bool, host_rate: float | None = None) -> Forecast:
    """Return the forecast, by the mean of earlier agents of this type or a rule of thumb."""
    agents = sum(1 for task in run.tasks.values() if not task.canary)
    known = _earlier(run, home)
    if not known:
        fewest, most = agents * FEWEST, agents * MOST
        return Forecast(agents, fewest, most, counted=metered, host_rate=host_rate)
    share = agents / len(known)
    spent = costs.spent(known)
    tokens = round(spent.tokens * share)
    return Forecast(
        agents=agents,
        fewest=tokens,
        most=tokens,
        cost=None if spent.cost is None else round(spent.cost * share, 4),
        minutes=round(costs.worked(known) * share / 60, 2),
        known=len(known),
        counted=metered,
        host_rate=host_rate,
    )


def _earlier(run: Run, home: str) -> list[Ended]:
    """Return how the agents of the same type ended in the latest runs."""
    found = []
    for name in runs.names(home)[-6:]:
        other = runs.load(runs.root(home) / name)
        if other.name != run.name and other.options.agent_type == run.options.agent_type:
            found += costs.ends(other.tasks.values())
    return found


# before the first agent


def told(run: Run) -> str:
    """Return the forecast as text: counts, tokens, cost, time, and what agents are given."""
    agents = len(run.tasks)
    fixes = sum(1 for task in run.tasks.values() if task.want == "fix")
    options = run.options
    kinds = f"{fixes} to fix, {agents - fixes} to improve"
    limit = span(options.agent_timeout)
    lines = [
        f"{counted(len(run.tests), 'test')} collected, {agents} selected: {kinds}.",
        *uncollected(run),
        *_clusters(run),
        _expected(run.forecast or Forecast(agents)),
        *_hosts(run),
        f"At most {counted(options.max_agents, 'agent')} at the same time, each for up to {limit}.",
        f"Agent type: {options.agent_type}, on {_place(run)}.",
        "Each agent gets a clone of the repository, a prompt, and the variables of its type.",
    ]
    return "\n".join(lines)


def _place(run: Run) -> str:
    hosts = run.forecast.hosts if run.forecast else ()
    provider = run.options.provider
    return f"{' and '.join(hosts)} ({provider})" if hosts else provider or "this machine"


def uncollected(run: Run) -> list[str]:
    """Return one line per file whose tests could not be collected; no agent gets them."""
    most = 5
    errors = (" ".join(clean(each).split()) for each in run.collect_errors[:most])
    lines = [f"Could not be collected: {each}" for each in errors]
    more = len(run.collect_errors) - most
    return [*lines, f"and {more} more, see the report"] if more > 0 else lines


def _clusters(run: Run) -> list[str]:
    """Return the number of probable causes, if tests wait for a canary."""
    if not any(task.canary for task in run.tasks.values()):
        return []
    failing = [task for task in run.tasks.values() if task.signature]
    shared = len({task.cluster for task in failing if task.cluster})
    alone = sum(1 for task in failing if not task.cluster)
    causes = counted(shared, "cluster")
    causes += f" and {counted(alone, 'test')} outside clusters" if alone else ""
    agents = counted(shared + alone, "agent")
    return [f"{len(failing)} failing tests ({causes}): probably {agents}, not {len(failing)}."]


def _hosts(run: Run) -> list[str]:
    made = run.forecast
    if made is None or not made.host_rate:
        return []
    total = f"; about {_money(_for_hosts(run, made))} in all" if made.minutes else ""
    return [f"Each host costs ${made.host_rate * 3600:.2f} per hour{total}."]


def _for_hosts(run: Run, made: Forecast) -> float | None:
    return None if made.minutes is None else costs.for_hosts(run, made.minutes * 60)


def _expected(made: Forecast) -> str:
    about = [each[1] for each in _figures(made) if not each[1].endswith(NOT_KNOWN)]
    if made.known:
        earlier = counted(made.known, "agent")
        return f"Based on the last {earlier} of this type: about {', '.join(about)}."
    if made.counted:
        return f"About {about[0]}, a rough estimate: there are no earlier agents of this type."
    return "Agents of this type do not report their usage."


def _figures(made: Forecast) -> list[tuple[str, str]]:
    """Return tokens, cost and time, each with its name."""
    time = ("time", _worked(made.minutes))
    if not made.counted:
        return [time]
    tokens = f"{made.fewest:,} to " if made.fewest != made.most else ""
    return [("tokens", f"{tokens}{made.most:,} tokens"), ("cost", _money(made.cost)), time]


def _money(cost: float | None) -> str:
    return f"cost {NOT_KNOWN}" if cost is None else f"${cost:.2f}"


def _worked(minutes: float | None) -> str:
    if minutes is None:
        return f"time {NOT_KNOWN}"
    told = f"{minutes:.1f} min" if minutes >= 1 else f"{minutes * 60:.0f} s"
    return f"{told} of agent time"


# a dry run


def dry_run(run: Run) -> str:
    """Return the agents that would start, the tests that would wait, the forecast, the branch."""
    first, waiting = _parted(run)
    if not first:
        none = f"Would start no agent: of {counted(len(run.tests), 'test')}, none is selected."
        return "\n".join([none, *uncollected(run)])
    lines = [f"Would start {counted(len(first), 'agent')} of type {run.options.agent_type}:"]
    lines += [f"  {task.want}  {task.node_id}" for task in first[:SHOWN]]
    lines += [f"  and {len(first) - SHOWN} more"] if len(first) > SHOWN else []
    if waiting:
        tests = f"{counted(len(waiting), 'test')} of the same clusters"
        lines.append(f"{tests} would wait for these, and get an agent only if they still fail.")
    return "\n".join([*lines, told(run), f"Branch: tmr/{run.name}"])


def dry_run_row(run: Run) -> dict[str, Json]:
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


def _parted(run: Run) -> tuple[list[Task], list[Task]]:
    """Return the tasks that would get an agent at once, and those that wait for a canary."""
    tasks = list(run.tasks.values())
    return [each for each in tasks if not each.canary], [each for each in tasks if each.canary]


def _task(run: Run, task: Task) -> dict[str, Json]:
    known = run.baseline.get(task.node_id)
    standing, why = known.standing if known else "", task.signature
    return {"test": task.node_id, "want": task.want, "standing": standing, "failure": why}


# after the run


def compared(run: Run) -> list[tuple[str, str, str]]:
    """Return (name, forecast, actual) of each figure; nothing without a forecast."""
    made = run.forecast
    if made is None:
        return []
    tokens, minutes = run.spent.tokens, costs.minutes(run)
    spent = Forecast(0, tokens, tokens, run.spent.cost, minutes, counted=made.counted)
    figures = zip(_figures(made), _figures(spent), strict=True)
    rows = [
        ("agents", counted(made.agents, "agent"), counted(run.tries, "agent")),
        *((what, before, after) for (what, before), (_, after) in figures),
    ]
    if made.host_rate:
        before = f"{_money(_for_hosts(run, made))} for hosts"
        rows.append(("hosts", before, f"${costs.of_hosts(run) or 0.0:.2f} for hosts"))
    return rows


def in_words(run: Run) -> list[str]:
    rows = compared(run)
    if not rows:
        return []
    return [
        f"Forecast: {', '.join(before for _, before, _ in rows)}",
        f"Used:     {', '.join(after for _, _, after in rows)}",
    ]
