"""What a run costs: tokens, money and the time of hosts, foreseen and used."""

from __future__ import annotations

from dataclasses import dataclass


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
