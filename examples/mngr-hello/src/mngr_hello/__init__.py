"""Register everything that this plugin adds to mngr.

This module is imported at every start of mngr, so it imports nothing itself: the modules that it
names are imported when they are used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugins.registry import Registry


def register(registry: Registry) -> None:
    registry.agent_type("parrot", "mngr_hello.parrot:Parrot")
    registry.provider("sandbox", "mngr_hello.sandbox:SandboxProvider")
    registry.command("hello", "mngr_hello.hello", "greet agents by name")
    registry.on("agent_created", "mngr_hello.diary:write")
    registry.on("agent_destroyed", "mngr_hello.diary:write")
