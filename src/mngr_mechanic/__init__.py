"""The mechanic: an agent type that fixes failing tests without a model, and its program."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugins.registry import Registry


def register(registry: Registry) -> None:
    registry.agent_type("mechanic", "mngr_mechanic.agent:MechanicAgent")
