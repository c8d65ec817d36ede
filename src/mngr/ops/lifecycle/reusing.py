"""`create --reuse`: use an existing agent if it matches the request."""

from __future__ import annotations

from mngr.errors import Taken
from mngr.model.quoting import join
from mngr.model.state import ALIVE
from mngr.ops.lifecycle import running
from mngr.ops.talk import message
from mngr.ops.work import sources, workdir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mngr.agents.base import Receipt
    from mngr.hosts.base import Host
    from mngr.model.records import AgentRecord
    from mngr.ops.lifecycle.request import CreateRequest
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World


def refuse_different(host: Host, agent: Agent, request: CreateRequest) -> None:
    """Raise if the agent differs from the request; options that were not given are not compared."""
    found = list(_differences(host, agent.record, request))
    if found:
        raise Taken(
            f"{agent.name} already exists and differs in: {', '.join(found)}",
            "drop these options to reuse it, or choose another name",
        )


def _differences(host: Host, record: AgentRecord, request: CreateRequest) -> Iterator[str]:
    kind = request.type or ("command" if request.args else record.type)
    if kind != record.type:
        yield f"its type is {record.type}"
    elif request.args not in ((), record.argv):
        yield f"its command is `{join(record.argv)}`"
    if workdir.TRANSFERS.get(request.transfer, record.transfer) != record.transfer:
        yield f"its transfer is {record.transfer}"
    base, new, explicit = workdir.parse_branch(request.branch, record.name)
    if explicit and (new or base) != record.branch:
        yield f"its branch is {record.branch}"
    if sources.is_other(host, request.source, record.source):
        yield f"its source is {record.source}"


def reuse(world: World, agent: Agent, text: str) -> tuple[Agent, Receipt | None]:
    """Return the agent, started if it had ended, and the receipt of the message."""
    if agent.state not in ALIVE:
        agent = running.start(world, agent)
    return agent, message.send(world, agent, text) if text else None
