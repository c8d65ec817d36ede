"""What a run will probably use, said before it does."""

from __future__ import annotations

from mngr_tmr import runs
from mngr_tmr.model import Run

FEWEST, MOST = 20_000, 50_000
"""Tokens that an agent needs for its context alone, where nothing better is known."""


def told(run: Run, home: str) -> str:
    """Counts, tokens, money and time; and what leaves this machine."""
    agents = len(run.tasks)
    fixes = sum(1 for task in run.tasks.values() if task.want == "fix")
    waiting = sum(1 for task in run.tasks.values() if task.canary)
    options = run.options
    kinds = f"{fixes} to fix, {agents - fixes} to improve"
    minutes = f"{options.agent_timeout / 60:g} min"
    lines = [
        f"{len(run.tests)} tests collected, {agents} get an agent: {kinds}; {waiting} wait first.",
        _tokens(run, home, agents),
        f"At most {options.max_agents} at once, each up to {minutes}.",
        f"Type: {options.agent_type}, on {options.provider or 'this machine'}.",
        "Agents get a clone of the repository, its prompt, and the variables their type declares.",
    ]
    return "\n".join(lines)


def _tokens(run: Run, home: str, agents: int) -> str:
    known = _earlier(run, home)
    if known is None:
        return f"About {agents * FEWEST:,} to {agents * MOST:,} tokens."
    tokens, cost, seconds = known
    money = f", ${cost * agents:.2f}" if cost is not None else ""
    minutes = seconds * agents / max(1, run.options.max_agents) / 60
    return f"By earlier runs: about {round(tokens * agents):,} tokens{money}, {minutes:.0f} min."


def _earlier(run: Run, home: str) -> tuple[float, float | None, float] | None:
    """Means per agent over the last runs with the same type."""
    tries = []
    for name in runs.names(home)[-6:]:
        other = runs.load(runs.root(home) / name)
        if other.name != run.name and other.options.agent_type == run.options.agent_type:
            tries += [t.ended for task in other.tasks.values() for t in task.tries if t.ended]
    if not tries:
        return None
    costs = [each.spent.cost for each in tries]
    cost = None if None in costs else sum(each or 0.0 for each in costs) / len(tries)
    tokens = sum(each.spent.tokens for each in tries) / len(tries)
    return tokens, cost, sum(each.seconds for each in tries) / len(tries)
