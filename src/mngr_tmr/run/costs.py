"""What a run costs: tokens, money and the time of hosts, foreseen and used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mngr_tmr.journal.model import Ended, Run, Task


@dataclass(frozen=True)
class Spending:
    """What agents cost; `cost` is None where a price is not known."""

    tokens: int = 0
    cost: float | None = 0.0
    guarded: float = 0.0
    """What counts against a limit: with the dearest price of its vendor for an unknown model."""
    unpriced: tuple[str, ...] = ()
    """Models whose price is not known."""

    def __add__(self, other: Spending) -> Spending:
        unknown = self.cost is None or other.cost is None
        cost = None if unknown else (self.cost or 0.0) + (other.cost or 0.0)
        names = tuple(sorted({*self.unpriced, *other.unpriced}))
        guarded = self.guarded + other.guarded
        return Spending(self.tokens + other.tokens, cost, guarded, names)

    def __sub__(self, other: Spending) -> Spending:
        cost = None if other.cost is None else -other.cost
        return self + Spending(-other.tokens, cost, -other.guarded)

    @property
    def counted(self) -> float:
        """Journals of earlier versions know only what was priced."""
        return max(self.guarded, self.cost or 0.0)


@dataclass(frozen=True)
class Forecast:
    """What a run will probably use, as it was said before its first agent."""

    agents: int = 0
    """That will probably be launched: of a cluster one."""
    fewest: int = 0
    most: int = 0
    """Tokens."""
    cost: float | None = None
    """None where no earlier run tells."""
    minutes: float | None = None
    """Of all agents together, however many work at once; None where no earlier run tells."""
    known: int = 0
    """How many agents of earlier runs it is the mean of."""
    counted: bool = True
    """Whether agents of this type tell what they use."""
    host_rate: float | None = None
    """Dollars per second of each host; None if hosts are free or have no price."""


@dataclass(frozen=True)
class HostTime:
    """What a host cost, in time."""

    provider: str
    seconds: float
    agents: int
    cost: float | None = None
    """Dollars; None if its price is not known."""


# sums


def ends(tasks: Iterable[Task]) -> list[Ended]:
    """Return how the agents of these tasks ended, without those at work."""
    return [each.ended for task in tasks for each in task.tries if each.ended]


def spent(ended: Iterable[Ended]) -> Spending:
    return sum((each.spent for each in ended), Spending())


def worked(ended: Iterable[Ended]) -> float:
    """Return the seconds of agent time."""
    return sum(each.seconds for each in ended)


def for_hosts(run: Run, seconds: float) -> float:
    """Return the dollars for hosts during so much agent time; 0 without a price."""
    rate = run.forecast.host_rate if run.forecast else None
    return (rate or 0.0) * seconds / max(1, run.options.agents_per_host)


def of_hosts(run: Run) -> float | None:
    """Return the dollars for hosts that have ended; None if no price is known."""
    known = [host.cost for host in run.hosts.values() if host.cost is not None]
    return sum(known) if known else None
