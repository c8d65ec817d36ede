"""What a run will probably use, said before it does, and set beside what it used."""

from __future__ import annotations

from mngr_tmr.journal.model import Ended, Run
from mngr_tmr.run import costs, runs
from mngr_tmr.run.costs import Forecast

FEWEST, MOST = 20_000, 50_000
"""Tokens that an agent needs for its context alone, where nothing better is known."""
NOT_KNOWN = "not known"


def forecast(run: Run, home: str, *, counted: bool, host_rate: float | None = None) -> Forecast:
    """By the mean of earlier agents of this type, else by a rule of thumb."""
    agents = sum(1 for task in run.tasks.values() if not task.canary)
    known = _earlier(run, home)
    if not known:
        fewest, most = agents * FEWEST, agents * MOST
        return Forecast(agents, fewest, most, counted=counted, host_rate=host_rate)
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
        counted=counted,
        host_rate=host_rate,
    )


def _earlier(run: Run, home: str) -> list[Ended]:
    """The agents of the same type in the last runs."""
    found = []
    for name in runs.names(home)[-6:]:
        other = runs.load(runs.root(home) / name)
        if other.name != run.name and other.options.agent_type == run.options.agent_type:
            found += costs.ends(other.tasks.values())
    return found


# before the first agent


def told(run: Run) -> str:
    """Counts, tokens, money and time; and what leaves this machine."""
    agents = len(run.tasks)
    fixes = sum(1 for task in run.tasks.values() if task.want == "fix")
    options = run.options
    kinds = f"{fixes} to fix, {agents - fixes} to improve"
    minutes = f"{options.agent_timeout / 60:g} min"
    lines = [
        f"{counted(len(run.tests), 'test')} collected, {agents} selected: {kinds}.",
        *_clusters(run),
        _expected(run.forecast or Forecast(agents)),
        *_hosts(run),
        f"At most {options.max_agents} agents at once, each up to {minutes}.",
        f"Type: {options.agent_type}, on {options.provider or 'this machine'}.",
        "Each agent gets a clone of the repository, a prompt, and the variables of its type.",
    ]
    return "\n".join(lines)


def _clusters(run: Run) -> list[str]:
    """Where many tests wait for one: how many causes there probably are."""
    waiting = sum(1 for task in run.tasks.values() if task.canary)
    if not waiting:
        return []
    failing = [task for task in run.tasks.values() if task.signature]
    shared = len({task.cluster for task in failing if task.cluster})
    alone = sum(1 for task in failing if not task.cluster)
    causes = counted(shared, "cluster")
    causes += f" and {alone} outside clusters" if alone else ""
    agents = _agents(shared + alone)
    return [f"{len(failing)} failing tests in {causes}: probably {agents}, not {len(failing)}."]


def _hosts(run: Run) -> list[str]:
    """What hosts cost, if they have a price."""
    made = run.forecast
    if made is None or not made.host_rate:
        return []
    hourly = f"Each host costs ${made.host_rate * 3600:.2f} per hour"
    return [
        f"{hourly}; about {_money(_for_hosts(run, made))} in all." if made.minutes else hourly + "."
    ]


def _for_hosts(run: Run, made: Forecast) -> float | None:
    """Dollars for the hosts that agents work on for so long."""
    return None if made.minutes is None else costs.for_hosts(run, made.minutes * 60)


def counted(number: int, noun: str) -> str:
    """`1 test`, `2 tests`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _expected(made: Forecast) -> str:
    about = [each[1] for each in _figures(made) if not each[1].endswith(NOT_KNOWN)]
    if made.known:
        return f"By the last {made.known} agents of this type: about {', '.join(about)}."
    if made.counted:
        return f"About {about[0]}, a rough estimate: there are no earlier agents of this type."
    return "Agents of this type do not report their usage."


def _figures(made: Forecast) -> list[tuple[str, str]]:
    """Without the agents, which are known."""
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


# afterwards


def minutes(run: Run) -> float:
    """Of all agents that ended, together."""
    return costs.worked(costs.ends(run.tasks.values())) / 60


def compared(run: Run) -> list[tuple[str, str, str]]:
    """What, as it was forecast, and as it came; nothing where nothing was forecast."""
    made = run.forecast
    if made is None:
        return []
    spent = Forecast(
        fewest=run.spent.tokens,
        most=run.spent.tokens,
        cost=run.spent.cost,
        minutes=minutes(run),
        counted=made.counted,
    )
    figures = zip(_figures(made), _figures(spent), strict=True)
    agents = ("agents", _agents(made.agents), _agents(run.tries))
    rows = [agents, *((what, before, after) for (what, before), (_, after) in figures)]
    if made.host_rate:
        before = f"{_money(_for_hosts(run, made))} for hosts"
        rows.append(("hosts", before, f"${costs.of_hosts(run) or 0.0:.2f} for hosts"))
    return rows


def _agents(number: int) -> str:
    return counted(number, "agent")


def in_words(run: Run) -> list[str]:
    rows = compared(run)
    if not rows:
        return []
    return [
        f"Forecast: {', '.join(before for _, before, _ in rows)}",
        f"Used:     {', '.join(after for _, _, after in rows)}",
    ]
