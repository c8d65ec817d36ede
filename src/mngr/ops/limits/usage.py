"""The usage of agents: tokens by model, and their cost."""

from __future__ import annotations

from mngr.agents.base import KINDS, Tokens, by_model
from mngr.errors import MngrError
from mngr.hosts.base import Host
from mngr.model.records import agents_dir
from mngr.model.struct import Json, Struct
from mngr.ops.limits.prices import Prices
from mngr.ops.look.listing import Agent
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CHUNK = 500
"""Agents whose names fit into one command line."""
DIGITS = 17
"""Maximum digits of a sum: agents write these files, and no real sum is longer."""

# Standard input: lines with the number of a meter and the names of agents.
ASK = r"""
LC_ALL=C; export LC_ALL
cd "$1" 2>/dev/null || exit 0
while read -r which agents; do "meter_$which" $agents < /dev/null; done | head -c 16777216
"""


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
    """Return usage by agent id, for types that report it, on hosts that answer."""
    prices = Prices(world.config)
    return {id: _usage(prices, models) for id, models in tokens(world, agents).items()}


def tokens(world: World, agents: Sequence[Agent]) -> dict[str, dict[str, Tokens]]:
    """Return the tokens by agent id and model, with one round trip per host."""
    found: dict[str, dict[str, Tokens]] = {}
    for host in {agent.host.ref.id: agent.host for agent in agents}.values():
        groups: dict[str, list[str]] = {}
        for agent in agents:
            if agent.host.ref == host.ref and agent.evidence.record is not None:
                groups.setdefault(_meter(world, agent.record.type), []).append(agent.id)
        groups.pop("", None)
        try:
            found |= _metered(host, groups) if groups else {}
        except MngrError as error:
            world.note(host.ref.name, error)
    return found


def _meter(world: World, type: str) -> str:
    try:
        return world.known_type(type).meter()
    except Exception as error:  # a plugin's type can raise anything
        world.note(type, error)
        return ""


def _metered(host: Host, groups: dict[str, list[str]]) -> dict[str, dict[str, Tokens]]:
    """Run each meter once for all its agents, and return what they print."""
    found: dict[str, dict[str, Tokens]] = {id: {} for ids in groups.values() for id in ids}
    meters = "".join(f"meter_{n}() {{\n:\n{text}\n}}\n" for n, text in enumerate(groups))
    lines = "".join(
        f"{n} {' '.join(ids[at : at + CHUNK])}\n"
        for n, ids in enumerate(groups.values())
        for at in range(0, len(ids), CHUNK)
    )
    script = ["sh", "-c", meters + ASK, "mngr", agents_dir(host.home)]
    done = host.run(script, input=lines.encode(), timeout=60)
    done.raise_if_failed(f"the usage on {host.ref.name} cannot be read")
    for line in done.stdout.decode("utf-8", "replace").split("\n"):
        words = line.split(" ")
        if words[0] in found and len(words) == 2 + len(KINDS) and all(map(_counts, words[2:])):
            counts = Tokens(**dict(zip(KINDS, map(int, words[2:]), strict=True)))
            models = found[words[0]]
            models[words[1]] = models.get(words[1], Tokens()) + counts
    return found


def _counts(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < DIGITS


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
