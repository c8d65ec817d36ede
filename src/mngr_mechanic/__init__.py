"""The mechanic: an agent that repairs without a model, and the program it brings along."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugins.registry import Registry


def register(registry: Registry) -> None:
    registry.agent_type("mechanic", "mngr_mechanic.agent:MechanicAgent")
