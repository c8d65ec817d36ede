"""Resolve a name, an id or an address to an agent."""

from __future__ import annotations

from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.ops.world import World


class Targets:
    """One home of mngr and its agents."""

    world: World

    def get(self, target: str | Agent) -> Agent:
        """Return the agent in its current state."""
        from mngr.ops.look import listing

        if isinstance(target, Agent):
            return listing.refreshed(self.world, target)
        return listing.resolve(self.world, [target])[0]

    def _agent(self, target: str | Agent) -> Agent:
        """Return the agent; an Agent is returned as it is, if its current state is not needed."""
        return target if isinstance(target, Agent) else self.get(target)
