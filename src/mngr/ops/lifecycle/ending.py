"""End the programs of any number of agents in one round trip per host."""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.hosts import tmux_scripts
from mngr.model import events
from mngr.ops.change import change
from mngr.ops.steps import step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from mngr.hosts.base import Host
    from mngr.model.records import AgentRecord
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

    RecordEdit: TypeAlias = Callable[[AgentRecord], AgentRecord]
    Intent: TypeAlias = Callable[[Agent], RecordEdit]

TOGETHER = 500
"""Agents per call: the patterns of their processes must fit into one word of a command line."""


def end(
    world: World,
    host: Host,
    chosen: Sequence[Agent],
    intent: Intent,
    recorded: str,
    event: str = "",
    force: bool = False,
) -> dict[str, str]:
    """Record each agent's intent, then end its processes; `recorded` names the step in between.

    The processes end even if the disk is full or a record is forged: an intent that cannot be
    recorded is tried again after they have ended. Return, by agent id, why that failed too.
    """
    late = [agent for agent in chosen if _failure(host, agent, intent(agent))]
    step(recorded)
    told = {agent.id: _told(agent, event) for agent in chosen}
    end_processes(world, host, told, force=force)
    failed = {agent.id: _failure(host, agent, intent(agent)) for agent in late}
    return {agent_id: why for agent_id, why in failed.items() if why}


def _told(agent: Agent, event: str) -> str:
    if not event:
        return ""
    return events.line(events.event(event, agent_id=agent.id, agent_name=agent.name))


def _failure(host: Host, agent: Agent, edit: RecordEdit) -> str:
    try:
        change(host, agent.id, edit, agent.evidence)
    except (MngrError, OSError) as error:
        return str(error) if isinstance(error, MngrError) else error.strerror or str(error)
    return ""


def end_processes(
    world: World, host: Host, ids: Mapping[str, str], *, force: bool = False
) -> dict[str, str]:
    """Save the screens, end every process, then the sessions; record each id's event.

    Return, by agent id, the launch of each session that was there.
    """
    launches: dict[str, str] = {}
    for first in range(0, len(ids), TOGETHER):
        some = dict(list(ids.items())[first : first + TOGETHER])
        launches |= _end(host, some, 0.0 if force else world.config.seconds("stop.grace"))
    return launches


def _end(host: Host, ids: Mapping[str, str], grace: float) -> dict[str, str]:
    words = [host.home, host.socket, str(max(1, round(grace))), tmux_scripts.patterns([*ids])]
    words += [word for pair in ids.items() for word in pair]
    patience = grace + 30 + 0.2 * len(ids)
    done = host.run(["sh", "-c", tmux_scripts.STOP, "mngr", *words], timeout=patience)
    if done.code:
        who = next(iter(ids)) if len(ids) == 1 else f"{len(ids)} agents"
        raise MngrError(f"some processes of {who} did not end", "see `mngr doctor`")
    found = (line.partition(" ") for line in os.fsdecode(done.stdout).splitlines())
    return {session: launch for session, _, launch in found}
