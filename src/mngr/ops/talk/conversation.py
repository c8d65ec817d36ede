"""Read conversations of any number of agents, one round trip per host."""

from __future__ import annotations

import io

from mngr.errors import MngrError
from mngr.model.records import agents_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.agents.base import AgentType, Tokens, Turn
    from mngr.hosts.base import Host
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

LIMIT = 64 << 20
"""A conversation file beyond this is not read; none of a real program's comes near."""

TOTAL = 512 << 20
FILES = 5000
"""Per agent and pattern: an agent can make as many as it likes."""

# Standard input: AGENT PATTERN, one pair per line. The patterns are left unquoted on purpose: the
# shell expands them; agent types, not agents, choose them. find and tar follow no links, and a name
# with a newline in it would be several to tar, or one of its options.
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
            for pattern in kind_of(world, agent).conversation
        ]
        if pairs:
            _fetch(host, "".join(pairs), found)
    return found


def kind_of(world: World, agent: Agent) -> AgentType:
    try:
        return world.agent_type(agent.record.type)
    except MngrError:  # an agent whose type is from a removed plugin
        return world.agent_type("command")


def _fetch(host: Host, pairs: str, found: dict[str, dict[str, bytes]]) -> None:
    import tarfile

    script = ["sh", "-c", FETCH, "mngr", agents_dir(host.home)]
    done = host.run(script, input=pairs.encode(), timeout=60)
    if done.code:
        raise MngrError(f"the conversations on {host.ref.name} cannot be read: {done.complaint}")
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


def kept(world: World, agent: Agent) -> bool:
    """Return whether its program keeps a conversation that mngr can read."""
    return agent.evidence.record is not None and bool(kind_of(world, agent).conversation)


def transcript(world: World, agent: Agent) -> list[Turn]:
    return kind_of(world, agent).transcript(files(world, [agent])[agent.id])


def tokens(world: World, agents: Sequence[Agent]) -> dict[str, dict[str, Tokens]]:
    """Return the tokens by agent id and model."""
    told: Mapping[str, Mapping[str, bytes]] = files(world, agents)
    return {agent.id: _used(world, agent, told[agent.id]) for agent in agents}


def _used(world: World, agent: Agent, told: Mapping[str, bytes]) -> dict[str, Tokens]:
    try:
        return kind_of(world, agent).usage(told)
    except Exception as error:  # a plugin's type can raise anything
        world.note(agent.record.type, error)
        return {}
