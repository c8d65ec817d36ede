"""A conversation as records, in the same format for every program."""

from __future__ import annotations

import time

from mngr.errors import Refused
from mngr.model.state import ALIVE
from mngr.ops.look.listing import refreshed
from mngr.ops.talk import conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mngr.agents.base import Turn
    from mngr.model.struct import Json
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

INTERVAL = 0.3

ROLES = {
    "user": "user_message",
    "assistant": "assistant_message",
    "tool": "tool_result",
}


def past(world: World, agent: Agent) -> list[dict[str, Json]]:
    """Return the whole conversation, oldest first."""
    require(world, agent)
    return _records(agent, conversation.transcript(world, agent))


def require(world: World, agent: Agent) -> None:
    if not conversation.kept(world, agent):
        raise Refused(
            f"{agent.name} runs {agent.record.type!r}, which has no transcript",
            f"see its screen with `mngr capture {agent.name}`",
        )


def _records(agent: Agent, turns: Sequence[Turn]) -> list[dict[str, Json]]:
    seen: dict[str, int] = {}
    found = []
    for number, turn in enumerate(turns, start=1):
        name = turn.id or f"{agent.id}-{number}"
        seen[name] = seen.get(name, 0) + 1
        # One answer of a model may be several entries in its program's file.
        unique = name if seen[name] == 1 else f"{name}-{seen[name]}"
        found.append(_record(agent, turn, unique))
    return found


def _record(agent: Agent, turn: Turn, event_id: str) -> dict[str, Json]:
    record: dict[str, Json] = {
        "event_id": event_id,
        "timestamp": turn.time,
        "source": agent.record.type,
        "type": turn.type,
        "text": turn.text,
    }
    if turn.model:
        record["model"] = turn.model
    if turn.tools:
        record["tools"] = [tool.to_json() for tool in turn.tools]
    return record


def follow(world: World, agent: Agent) -> Iterator[dict[str, Json]]:
    """Yield past entries, then new ones until the agent has ended.

    The last entry may still grow: it is returned once it is unchanged between two readings, and
    again, with the same id, if it changes after that.
    """
    told: dict[str, dict[str, Json]] = {}
    before: list[dict[str, Json]] = []
    while True:
        alive = refreshed(world, agent).state in ALIVE
        now = past(world, agent)
        for number, record in enumerate(now):
            settled = number < len(now) - 1 or record in before[-1:] or not alive
            if settled and told.get(str(record["event_id"])) != record:
                told[str(record["event_id"])] = record
                yield record
        if not alive and now == before:
            return
        before = now
        time.sleep(INTERVAL)
