"""Destroy agents: everything removed is moved as one directory, so that it can be restored.

First the intent is recorded and the processes end, then everything moves to the trash (see
`removal`). Confirmation is the caller's task.
"""

from __future__ import annotations

import time

from mngr.errors import MngrError, NotFound
from mngr.hosts import spawn
from mngr.hosts.processes import this_process
from mngr.model.records import AgentRecord, Removal, StopIntent
from mngr.model.state import ALIVE
from mngr.ops.change import changed
from mngr.ops.lifecycle.ending import end_processes
from mngr.ops.steps import step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mngr.hosts.base import Host
    from mngr.ops.lifecycle.removal import Destroyed, DestroyResult, Read
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

BATCH = 500
"""Agents per call: their arguments must fit on a command line."""


def destroy(world: World, agent: Agent, *, drop_branch: bool = False) -> Destroyed:
    """Move the agent to the trash; confirmation is the caller's task."""
    outcome = destroy_many(world, [agent], drop_branch=drop_branch)[agent.id]
    if isinstance(outcome, MngrError):
        raise outcome
    return outcome


def destroy_many(
    world: World, chosen: Sequence[Agent], *, drop_branch: bool = False
) -> dict[str, DestroyResult]:
    """Destroy several agents; return each outcome by id. One failure does not stop the others."""
    outcomes: dict[str, DestroyResult] = {}
    for host in {agent.host.ref.id: agent.host for agent in chosen}.values():
        mine = [agent for agent in chosen if agent.host.ref == host.ref]
        for start in range(0, len(mine), BATCH):
            outcomes |= _destroy_on(world, host, mine[start : start + BATCH], drop_branch)
    return outcomes


def _destroy_on(
    world: World, host: Host, mine: Sequence[Agent], drop_branch: bool
) -> dict[str, DestroyResult]:
    read, failed = _record(host, mine, drop_branch)
    step("removal_recorded")
    # This includes agents whose record cannot be changed, for example on a full disk.
    gone_already = [each for each in failed if isinstance(failed[each], NotFound)]
    outcomes: dict[str, DestroyResult] = {each: failed[each] for each in gone_already}
    ids = [agent.id for agent in mine if agent.id not in outcomes]
    failures, launches = spawn.beside(lambda: _end(world, host, ids), _load)
    outcomes |= failures
    step("processes_ended")
    from mngr.ops.lifecycle.removal import remove

    late, unrecorded = _record(host, [a for a in mine if a.id in failed], drop_branch)
    names = {agent.id: agent.name for agent in mine}
    untold = {each: _unrecorded(names[each], error) for each, error in unrecorded.items()}
    outcomes = {**untold, **outcomes}
    read |= late
    # A launch creates one session, so one that was ended here cannot create another. The agent's
    # own folder does not prove that, because a process of the agent can write there.
    settled = {id for id, (record, _) in read.items() if launches.get(id) == record.launch}
    left = {each: read[each] for each in read if each not in outcomes}
    outcomes |= remove(world, host, left, settled)
    _end_late(world, host, outcomes)
    for agent in mine:
        if not isinstance(outcomes[agent.id], MngrError):
            world.emit("agent_destroyed", host, agent.record)
    return outcomes


def _load() -> None:
    """Import what moves agents to the trash, while their processes end."""
    import mngr.ops.lifecycle.removal  # noqa: F401


def _record(
    host: Host, chosen: Sequence[Agent], drop_branch: bool
) -> tuple[Read, dict[str, MngrError]]:
    """Record the intent for each agent; return the readings, and the errors by id."""
    read: Read = {}
    failed: dict[str, MngrError] = {}
    for agent in chosen:
        try:
            edit = _with_removal(agent, drop_branch)
            read[agent.id] = changed(host, agent.id, edit, agent.evidence)
        except (MngrError, OSError) as error:
            from mngr.ops.lifecycle.moving import gone
            from mngr.ops.lifecycle.removal import told

            failed[agent.id] = gone(agent.name) if isinstance(error, NotFound) else told(error)
    return read, failed


def _unrecorded(name: str, error: MngrError) -> MngrError:
    why = error.message
    return MngrError(
        f"the processes of {name} have ended, but its destruction could not be recorded: {why}",
        "nothing was moved; free some disk space and destroy it again",
    )


def _with_removal(agent: Agent, drop_branch: bool) -> Callable[[AgentRecord], AgentRecord]:
    now = time.time()

    def edit(record: AgentRecord) -> AgentRecord:
        # A repeat after a crash is the same removal, so its note must not be kept as history.
        since = record.removal.time if record.removal else now
        drop = drop_branch or bool(record.removal and record.removal.drop_branch)
        removal = Removal(time=since, worker=this_process(), drop_branch=drop)
        # The agent was ended by mngr, so after a restore it is STOPPED rather than FAILED.
        intent = StopIntent(launch=record.launch, time=now)
        stop = intent if agent.state in ALIVE else record.stop
        return record.replace(removal=removal, stop=stop)

    return edit


def _end(
    world: World, host: Host, ids: Sequence[str]
) -> tuple[dict[str, DestroyResult], dict[str, str]]:
    """End all in one round trip; if processes remain, one by one to find out whose they are.

    Return the failures, and the launches whose sessions have ended, by id.
    """
    try:
        return {}, end_processes(world, host, dict.fromkeys(ids, ""))
    except MngrError as error:
        if len(ids) == 1:
            return {ids[0]: error}, {}
        each = [_end(world, host, [one])[0] for one in ids]
        return {id: why for failures in each for id, why in failures.items()}, {}


def _end_late(world: World, host: Host, outcomes: Mapping[str, DestroyResult]) -> None:
    """End agents again: a concurrent start may have launched one before the move."""
    ended = {id: each for id, each in outcomes.items() if not isinstance(each, MngrError)}
    late = {id: "" for id, each in ended.items() if each.session}
    if late:
        end_processes(world, host, late)


def discard(world: World, host: Host, record: AgentRecord) -> None:
    """Move what a failed create has made to the trash."""
    removal = Removal(time=time.time(), worker=this_process())
    read = changed(host, record.id, lambda now: now.replace(removal=now.removal or removal))
    end_processes(world, host, {record.id: ""})
    from mngr.ops.lifecycle.removal import remove

    for outcome in remove(world, host, {record.id: read}).values():
        if isinstance(outcome, MngrError):
            raise outcome
