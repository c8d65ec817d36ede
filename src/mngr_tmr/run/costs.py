"""Compute what a run costs: tokens, dollars and host time, forecast and actual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr_tmr.journal.model import Ended, Run, Task


@dataclass(frozen=True)
class Spending:
    """The usage of agents; `cost` is None if a price is not known."""

    tokens: int = 0
    cost: float | None = 0.0
    guarded: float = 0.0
    """The cost for limits: an unknown model has the highest price of its vendor."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known."""

    @property
    def counted(self) -> float:
        """Return the cost for limits, at least what is known to have been spent."""
        return max(self.guarded, self.cost or 0.0)


@dataclass(frozen=True)
class Forecast:
    """What a run will probably use, as shown before its first agent."""

    agents: int = 0
    """Agents that will probably start: one per cluster."""
    fewest: int = 0
    most: int = 0
    """Tokens."""
    cost: float | None = None
    """None without earlier runs."""
    minutes: float | None = None
    """The sum over all agents; None without earlier runs."""
    known: int = 0
    """Number of agents of earlier runs that the forecast is based on."""
    counted: bool = True
    """Whether agents of this type report their usage."""
    host_rate: float | None = None
    """Dollars per second of each host; None if hosts are free or have no price."""
    hosts: tuple[str, ...] = ()
    """The hosts of the run, if they exist already."""


@dataclass(frozen=True)
class HostTime:
    """The time and cost of a host."""

    seconds: float
    agents: int
    """Number of agents that ran there."""
    cost: float | None = None
    """Dollars; None if its price is not known."""


# sums


def ends(tasks: Iterable[Task]) -> list[Ended]:
    """Return how the agents of these tasks ended, without those at work."""
    return [each.ended for task in tasks for each in task.tries if each.ended]


def spent(ended: Iterable[Ended]) -> Spending:
    """Return the sum; its cost is not known if that of one agent is not."""
    found = [each.spent for each in ended]
    costs = [each.cost for each in found if each.cost is not None]
    return Spending(
        tokens=sum(each.tokens for each in found),
        cost=sum(costs) if len(costs) == len(found) else None,
        guarded=sum(each.guarded for each in found),
        unpriced=tuple(sorted({name for each in found for name in each.unpriced})),
    )


def worked(ended: Iterable[Ended]) -> float:
    """Return the seconds of agent time."""
    return sum(each.seconds for each in ended)


def minutes(run: Run) -> float:
    """Return the minutes of agent time of all agents that ended."""
    return worked(ends(run.tasks.values())) / 60


def for_hosts(run: Run, seconds: float) -> float:
    """Return the dollars for hosts during so much agent time; 0 without a price."""
    rate = run.forecast.host_rate if run.forecast else None
    return (rate or 0.0) * seconds / max(1, run.options.agents_per_host)


def of_hosts(run: Run) -> float | None:
    """Return the dollars for hosts that have ended; None if no price is known."""
    known = [host.cost for host in run.hosts.values() if host.cost is not None]
    return sum(known) if known else None
