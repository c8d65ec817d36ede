"""Resolve a name, an id or an address to an agent."""

from __future__ import annotations

from mngr.api.modules import listing
from mngr.errors import MngrError
from mngr.ops.look.listing import Agent
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Targets:
    """One home of mngr and its agents."""

    _world: World

    @property
    def home(self) -> str:
        return self._world.home

    def ask_with(self, asks: Callable[[str], bool] | None) -> None:
        """Ask the user questions with this function; None without a terminal."""
        self._world.asks = asks

    def get(self, target: str | Agent) -> Agent:
        """Return the agent in its current state."""
        if isinstance(target, Agent):
            return listing.refreshed(self._world, target)
        return listing.resolve(self._world, [target])[0]

    def find(
        self, targets: Sequence[str], *, look: bool = True
    ) -> tuple[Sequence[Agent], Sequence[MngrError]]:
        """Return the agents that the targets name, each once, and an error for every other target.

        Without `look`, their states may be missing.
        """
        return listing.find(targets, listing.candidates(self._world, targets, look=look))

    def one(self, pool: Sequence[Agent], word: str) -> Agent:
        """Return the agent of the pool that the word means; raise if there is none or several."""
        return listing.one(pool, word)

    def _agent(self, target: str | Agent) -> Agent:
        """Return the agent; an Agent is returned as it is, if its current state is not needed."""
        return target if isinstance(target, Agent) else self.get(target)
