"""From a name, an id or an address to the agent it means."""

from __future__ import annotations

from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.ops.world import World


class Targets:
    """One home, and the agents in it."""

    world: World

    def get(self, target: str | Agent) -> Agent:
        """The agent as it is now."""
        from mngr.ops.look import listing

        if isinstance(target, Agent):
            return listing.refreshed(self.world, target)
        return listing.resolve(self.world, [target])[0]

    def _agent(self, target: str | Agent) -> Agent:
        """An Agent is returned unread: what travels does not depend on its state."""
        return target if isinstance(target, Agent) else self.get(target)
