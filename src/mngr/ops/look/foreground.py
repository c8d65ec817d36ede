"""Stream the output of a headless agent."""

from __future__ import annotations

import time

from mngr.model.state import ALIVE
from mngr.ops.look import event_log
from mngr.ops.look.listing import refreshed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal, TypeAlias

    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

    Stream: TypeAlias = Literal["stdout", "stderr"]

INTERVAL = 0.05


def stream(world: World, agent: Agent) -> Iterator[tuple[Stream, bytes]]:
    """Yield the output until the agent has ended and everything it wrote was returned."""
    offsets: dict[Stream, int] = {"stdout": 0, "stderr": 0}
    while True:
        # Read the state before the files, so that everything written before the end is read.
        alive = refreshed(world, agent).state in ALIVE
        quiet = True
        for name, offset in offsets.items():
            if data := event_log.read(agent, offset, name):
                offsets[name] = offset + len(data)
                quiet = False
                yield name, data
        if quiet and not alive:
            return
        if quiet:
            time.sleep(INTERVAL)
