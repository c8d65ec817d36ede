"""The usage of agents: tokens by model, and their cost."""

from __future__ import annotations

from mngr.agents.base import KINDS, Tokens, by_model
from mngr.errors import MngrError
from mngr.model.struct import Struct
from mngr.ops.limits.prices import Prices
from mngr.ops.talk import conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.model.struct import Json
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World


class Usage(Struct):
    """The usage of one or more agents."""

    models: dict[str, Tokens]
    cost: float
    """Dollars, without models that have no price."""
    unpriced: tuple[str, ...] = ()
    """Models that have no price."""
    guarded: float = 0.0
    """Dollars, for limits: a model without a price has the highest price of its vendor."""

    @property
    def tokens(self) -> Tokens:
        return sum(self.models.values(), Tokens())

    def described(self, *, partly: bool = False) -> dict[str, Json]:
        """Return JSON; `cost` is null unless fully known, or with `partly` lists `unpriced`."""
        tokens, known = self.tokens, partly or not self.unpriced
        row: dict[str, Json] = {"tokens": tokens.total}
        row |= {kind: getattr(tokens, kind) for kind in KINDS}
        cost = round(self.cost, 6) if known else None
        return {**row, "cost": cost, "unpriced": list(self.unpriced)}


def of(world: World, agents: Sequence[Agent]) -> dict[str, Usage]:
    """Return usage by agent id, one round trip per host, for types that report it."""
    prices = Prices(world.config)
    telling = [agent for agent in agents if conversation.kept(world, agent)]
    used = conversation.tokens(world, telling)
    return {id: _usage(prices, models) for id, models in used.items()}


def _usage(prices: Prices, models: dict[str, Tokens]) -> Usage:
    cost, unpriced = prices.cost(models)
    guarded = prices.guarded(models)
    return Usage(models=models, cost=cost, unpriced=tuple(unpriced), guarded=guarded)


def total_usage(each: Iterable[Usage]) -> Usage:
    """Return the sum, with the names of all models without a price."""
    every = tuple(each)
    return Usage(
        models=by_model(pair for usage in every for pair in usage.models.items()),
        cost=sum(usage.cost for usage in every),
        unpriced=tuple(sorted({name for usage in every for name in usage.unpriced})),
        guarded=sum(usage.guarded for usage in every),
    )


def of_reachable(world: World, agents: Sequence[Agent]) -> dict[str, Usage]:
    """Return usage by agent id without hosts that do not answer, which are reported elsewhere."""
    found: dict[str, Usage] = {}
    for ref in {agent.host.ref.id: agent.host.ref for agent in agents}.values():
        try:
            found |= of(world, [agent for agent in agents if agent.host.ref == ref])
        except MngrError as error:
            world.note(ref.name, error)
    return found
