"""Read the conversations of any number of agents, one round trip per host."""

from __future__ import annotations

import io
import time

from mngr.errors import Refused
from mngr.model.records import agents_dir
from mngr.model.state import ALIVE
from mngr.ops.look.listing import refreshed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mngr.agents.base import Turn
    from mngr.hosts.base import Host
    from mngr.model.struct import Json
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

LIMIT = 64 << 20
"""Bytes above which a conversation file is not read; real ones are far smaller."""

TOTAL = 512 << 20
FILES = 5000
"""Files per agent and pattern, because an agent can create any number of them."""

# Standard input: AGENT PATTERN, one pair per line. The patterns are not quoted, so that the shell
# expands them; they come from agent types, not from agents. find and tar follow no links. A name
# with a newline is skipped, because tar would read it as several names or as an option.
FETCH = (
    r"""
cd "$1" 2>/dev/null || exit 0
shift
look() { [ $# -eq 0 ] || find "$@" -prune -type f -size -BLOCKS -print 2>/dev/null; }
{ while read -r agent pattern; do
  count=0
  for each in "./$agent"/$pattern; do
    case $each in *'
'*) continue ;; esac
    [ -f "$each" ] || continue
    count=$((count + 1)); [ "$count" -le FILES ] || break
    set -- "$@" "$each"
    [ $# -lt 500 ] || { look "$@"; set --; }
  done
done; look "$@"; } | tar -cf - -T - 2>/dev/null | head -c TOTAL
""".replace("BLOCKS", str(LIMIT // 512 + 1))
    .replace("FILES", str(FILES))
    .replace("TOTAL", str(TOTAL))
)


def files(world: World, agents: Sequence[Agent]) -> dict[str, dict[str, bytes]]:
    """Return, by agent id, the conversation files by path in the state directory."""
    found: dict[str, dict[str, bytes]] = {agent.id: {} for agent in agents}
    for host in {agent.host.ref.id: agent.host for agent in agents}.values():
        mine = [agent for agent in agents if agent.host.ref == host.ref and agent.evidence.record]
        pairs = [
            f"{agent.id} {pattern}\n"
            for agent in mine
            for pattern in world.known_type(agent.record.type).conversation
        ]
        if pairs:
            _fetch(host, "".join(pairs), found)
    return found


def _fetch(host: Host, pairs: str, found: dict[str, dict[str, bytes]]) -> None:
    import tarfile

    script = ["sh", "-c", FETCH, "mngr", agents_dir(host.home)]
    done = host.run(script, input=pairs.encode(), timeout=60)
    done.raise_if_failed(f"the conversations on {host.ref.name} cannot be read")
    if not done.stdout:
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(done.stdout), mode="r:") as archive:
            for member in archive:
                agent_id, _, path = member.name.removeprefix("./").partition("/")
                if member.isfile() and agent_id in found and member.size <= LIMIT:
                    content = archive.extractfile(member)
                    found[agent_id][path] = content.read() if content else b""
    except tarfile.TarError:  # more than TOTAL; the complete files are used
        return


def transcript(world: World, agent: Agent) -> list[Turn]:
    return world.known_type(agent.record.type).transcript(files(world, [agent])[agent.id])


# records

INTERVAL = 0.3

ROLES = {
    "user": "user_message",
    "assistant": "assistant_message",
    "tool": "tool_result",
}


def past(world: World, agent: Agent) -> list[dict[str, Json]]:
    """Return the whole conversation, oldest first."""
    require(world, agent)
    return _records(agent, transcript(world, agent))


def require(world: World, agent: Agent) -> None:
    """Raise unless its program keeps a conversation that mngr can read."""
    if not world.known_type(agent.record.type).conversation:
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
