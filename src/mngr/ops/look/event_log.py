"""An agent's event stream."""

from __future__ import annotations

import os
import time

from mngr.hosts import agent_files
from mngr.model import events
from mngr.model.records import agent_dir
from mngr.model.struct import Json
from mngr.ops.look.listing import Agent
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 16 << 20


def read(agent: Agent, offset: int = 0, name: str = "events.jsonl") -> bytes:
    """Return the file from `offset` on; b"" if there is no regular file with that name."""
    path = os.path.join(agent_dir(agent.host.home, agent.id), name)
    words = [path, str(offset + 1), str(PIECE)]
    return agent.host.run(["sh", "-c", agent_files.SHOW, "mngr", *words], timeout=60).stdout


def past(agent: Agent) -> list[dict[str, Json]]:
    return list(events.parse(read(agent).splitlines()))


def follow(agent: Agent, interval: float = 0.2) -> Iterator[dict[str, Json]]:
    """Yield past events, then new ones, endlessly; an incomplete line waits for its end."""
    offset = 0
    while True:
        data = read(agent, offset)
        whole = data[: data.rfind(b"\n") + 1]
        offset += len(whole)
        yield from events.parse(whole.splitlines())
        time.sleep(transport.pause(agent.host, interval))
