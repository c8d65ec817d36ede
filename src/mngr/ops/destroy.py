"""Destroy: everything removed is one moved directory, so everything comes back.

First the intent is recorded and the processes end, then everything moves to the trash: see
`burial`. Asking whether that is wanted is the caller's business.
"""

from __future__ import annotations

import time

from mngr.errors import MngrError, NotFound
from mngr.hosts.processes import this_process
from mngr.ops import workdir
from mngr.ops.burial import Destroyed, bury, gone, told
from mngr.ops.change import changed
from mngr.ops.ending import end_processes
from mngr.ops.steps import step
from mngr.records import AgentRecord, Removal, StopIntent
from mngr.state import ALIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.hosts.base import Host
    from mngr.ops.burial import Outcome, Read
    from mngr.ops.listing import Agent
    from mngr.ops.workdir import Risk
    from mngr.ops.world import World

BATCH = 500
"""Agents per visit: their words have to fit on a command line."""


def risk(agent: Agent, *, drop_branch: bool = False) -> Risk:
    """What would be lost if the trash were emptied too."""
    record = agent.record
    if not record.made_work_dir:
        return workdir.Risk()
    losing = record.branch if drop_branch and record.made_branch else ""
    return workdir.at_risk(
        agent.host,
        record.work_dir,
        record.transfer,
        losing_branch=losing,
        source=record.source,
        base=record.base_commit,
    )


def destroy(world: World, agent: Agent, *, drop_branch: bool = False) -> Destroyed:
    """Move the agent to the trash; asking whether that is wanted is the caller's business."""
    outcome = destroy_many(world, [agent], drop_branch=drop_branch)[agent.id]
    if isinstance(outcome, MngrError):
        raise outcome
    return outcome


def destroy_many(
    world: World, chosen: Sequence[Agent], *, drop_branch: bool = False
) -> dict[str, Outcome]:
    """What became of each, by id; one that fails does not hold up the others."""
    outcomes: dict[str, Outcome] = {}
    for host in {agent.host.ref.id: agent.host for agent in chosen}.values():
        mine = [agent for agent in chosen if agent.host.ref == host.ref]
        for start in range(0, len(mine), BATCH):
            outcomes |= _destroy_on(world, host, mine[start : start + BATCH], drop_branch)
    return outcomes


def _destroy_on(
    world: World, host: Host, mine: Sequence[Agent], drop_branch: bool
) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    read: Read = {}
    for agent in mine:
        try:
            edit = _with_removal(agent, drop_branch)
            read[agent.id] = changed(host, agent.id, edit, agent.evidence)
        except NotFound:
            outcomes[agent.id] = gone(agent.name)
        except (MngrError, OSError) as error:
            outcomes[agent.id] = told(error)
    step("removal_recorded")
    # Also of those whose record cannot be changed, on a full disk say.
    there = [a.id for a in mine if not isinstance(outcomes.get(a.id), NotFound)]
    outcomes |= _end(world, host, there)
    step("processes_ended")
    outcomes |= bury(world, host, {id: read[id] for id in read if id not in outcomes})
    for agent in mine:
        if isinstance(outcomes[agent.id], Destroyed):
            world.emit("agent_destroyed", host, agent.record)
    return outcomes


def _with_removal(agent: Agent, drop_branch: bool) -> Callable[[AgentRecord], AgentRecord]:
    now = time.time()

    def edit(record: AgentRecord) -> AgentRecord:
        # A repeat after a crash is the same removal: its note must not count as history.
        since = record.removal.time if record.removal else now
        drop = drop_branch or bool(record.removal and record.removal.drop_branch)
        removal = Removal(time=since, worker=this_process(), drop_branch=drop)
        # Ended by us, not by itself: restored, it is STOPPED rather than FAILED.
        intent = StopIntent(launch=record.launch, time=now)
        stop = intent if agent.state in ALIVE else record.stop
        return record.replace(removal=removal, stop=stop)

    return edit


def _end(world: World, host: Host, ids: Sequence[str]) -> dict[str, Outcome]:
    """In one visit; only where something is left, one by one, to tell whose it is."""
    try:
        if ids:
            end_processes(world, host, ids)
    except MngrError as error:
        if len(ids) == 1:
            return {ids[0]: error}
        return {key: each for one in ids for key, each in _end(world, host, [one]).items()}
    return {}


def discard(world: World, host: Host, record: AgentRecord) -> None:
    """A create that failed: what it made so far goes to the trash."""
    removal = Removal(time=time.time(), worker=this_process())
    read = changed(host, record.id, lambda now: now.replace(removal=now.removal or removal))
    end_processes(world, host, [record.id])
    for outcome in bury(world, host, {record.id: read}).values():
        if isinstance(outcome, MngrError):
            raise outcome
