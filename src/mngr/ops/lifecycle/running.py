"""start, stop, restart, archive, rename, label."""

from __future__ import annotations

import os
import time

from mngr.errors import MngrError, Unreachable, UsageError
from mngr.hosts import agent_files, tmux
from mngr.hosts.base import Host
from mngr.model import events
from mngr.model.address import check_name
from mngr.model.records import AgentRecord, StopIntent, agent_dir
from mngr.model.state import ALIVE, ENDED, State
from mngr.ops.change import change
from mngr.ops.lifecycle import launch, names
from mngr.ops.lifecycle.ending import end_processes
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.steps import step
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def note_event(host: Host, record: AgentRecord, type: str, **fields: str) -> None:
    path = os.path.join(agent_dir(host.home, record.id), "events.jsonl")
    line = events.of_agent(type, record.id, record.name, **fields)
    host.run(["sh", "-c", agent_files.NOTE, "mngr", path, line], timeout=30)


def stop(world: World, agent: Agent) -> Agent:
    """Stop an agent; record nothing if it has already finished."""
    agent = refreshed(world, agent)
    unrecorded = stop_many(world, [agent])
    stopped = refreshed(world, agent)
    check_stopped(stopped, unrecorded)
    return stopped


def check_stopped(agent: Agent, unrecorded: Mapping[str, str]) -> None:
    """Raise unless the agent has ended and its record says so."""
    if agent.state in ALIVE:
        starting = agent.state is State.CREATING  # its processes begin after the others have ended
        hint = "try again" if starting else "see `mngr doctor`"
        raise MngrError(f"{agent.name} is still {agent.verdict}", hint)
    if agent.id in unrecorded:
        raise MngrError(
            f"{agent.name}: its processes have ended, but the stop could not be recorded: "
            f"{unrecorded[agent.id]}",
            f"it is listed as {agent.verdict}",
        )


def stop_many(world: World, chosen: Sequence[Agent], *, force: bool = False) -> dict[str, str]:
    """Stop the agents with one round trip per host; read them again to see the result.

    Return, by agent id, why a stop could not be recorded.
    """
    unrecorded: dict[str, str] = {}
    alive = [agent for agent in chosen if agent.state in ALIVE]
    for host in {agent.host.ref.id: agent.host for agent in alive}.values():
        mine = [agent for agent in alive if agent.host.ref == host.ref]
        unrecorded |= _stop_on(world, host, mine, force)
        for agent in mine:
            world.emit("agent_stopped", host, agent.record)
    _end_remains(world, chosen)
    return unrecorded


def _stop_on(world: World, host: Host, chosen: Sequence[Agent], force: bool) -> dict[str, str]:
    """Record for each agent that it is to stop, then end its processes.

    The processes end even if the disk is full or a record is forged: a record that cannot be
    changed is tried again after they have ended. Return, by agent id, why that failed too.
    """
    late = [agent for agent in chosen if _unrecorded(host, agent)]
    step("intent")
    told = {each.id: events.of_agent("agent_stopped", each.id, each.name) for each in chosen}
    end_processes(world, host, told, force=force)
    failed = {agent.id: _unrecorded(host, agent) for agent in late}
    return {agent_id: why for agent_id, why in failed.items() if why}


def _unrecorded(host: Host, agent: Agent) -> str:
    """Record that the agent is to stop; return why that failed."""
    try:
        change(host, agent.id, _stopping, agent.evidence)
    except (MngrError, OSError) as error:
        return str(error) if isinstance(error, MngrError) else error.strerror or str(error)
    return ""


def _stopping(record: AgentRecord) -> AgentRecord:
    return record.replace(stop=StopIntent(launch=record.launch, time=time.time()))


def _end_remains(world: World, chosen: Sequence[Agent]) -> None:
    """End the remaining terminals of agents that have ended, for example an extra window.

    A program that ignores SIGHUP survives the terminal server; its agent is LOST.
    """
    left = [
        a for a in chosen
        if a.state is State.LOST
        or (a.state in ENDED and any(not pane.dead for pane in a.evidence.panes))
    ]  # fmt: skip
    for host in {agent.host.ref.id: agent.host for agent in left}.values():
        end_processes(world, host, {a.id: "" for a in left if a.host.ref == host.ref})


def start(world: World, agent: Agent, *, fresh: bool = False) -> Agent:
    """Launch the agent again; do nothing if it is running.

    A `fresh` reading is not repeated: if the record has changed since, the swap fails.
    """
    if not fresh or agent.state is State.UNREACHABLE or agent.host_stopped:
        agent = _awake(world, agent)
    if agent.state in ALIVE:
        return agent
    if agent.state is State.UNREACHABLE:
        hint = "see `mngr list --hosts`"
        raise MngrError(f"{agent.name} cannot be started: {agent.verdict.reason}", hint)
    old = agent.record
    if old.removal is not None:
        raise MngrError(
            f"{agent.name} is partly destroyed",
            f"run `mngr restore {agent.name}`, or destroy it again",
        )
    kind = world.agent_type(old.type)
    record = change(
        agent.host,
        agent.id,
        lambda now: launch.launched_now(now) if now == old else now,
        agent.evidence,
    )
    if record.launches == old.launches:
        return refreshed(world, agent)  # another process started it at the same time
    step("launch_recorded")
    if record.sandbox:  # a process left inside could change the files that a shell outside runs
        end_processes(world, agent.host, {agent.id: ""})
    context = launch.context(agent.host, record)
    prepared = kind.resume(context.replace(evidence=agent.evidence))
    files = dict(launch.launch_files(world, agent.host, record, prepared, {}))
    env = os.path.join(agent_dir(agent.host.home, agent.id), "env")
    files.pop(env)  # keep the environment it was created with
    agent.host.put(files)
    grace = world.config.seconds("stop.grace")
    reading = launch.launch(agent.host, record, "agent_started", grace)
    world.emit("agent_started", agent.host, record)
    return refreshed(world, agent, reading)


def _awake(world: World, agent: Agent) -> Agent:
    """Return the agent as it is now; start its host first if that is stopped."""
    try:
        return refreshed(world, agent)
    except Unreachable:
        from mngr.ops.hosting import hosts

        if not hosts.wake(world, agent.host):
            raise
        return refreshed(world, agent)


def restart(world: World, agent: Agent) -> Agent:
    return start(world, stop(world, agent), fresh=True)


def archive(world: World, agent: Agent) -> Agent:
    """Stop the agent and hide it from lists; `start` reverses this."""
    stop(world, agent)
    record = change(
        agent.host, agent.id, lambda now: now.replace(archived=now.archived or time.time())
    )
    note_event(agent.host, record, "agent_archived")
    return refreshed(world, agent)


def rename(world: World, agent: Agent, new_name: str) -> Agent:
    """Rename the agent in its record; its work directory and branch keep their names."""
    check_name(new_name)
    old_name = agent.record.name
    if new_name == old_name:
        return agent
    names.claim(agent.host, new_name, agent.id)
    step("name_claimed")
    try:
        record = change(agent.host, agent.id, lambda now: now.replace(name=new_name))
    except MngrError:
        names.release(agent.host, new_name, agent.id)
        raise
    step("renamed")
    names.release(agent.host, old_name, agent.id)
    agent.host.run(tmux.set_name(agent.host.socket, agent.id, new_name), timeout=20)
    note_event(agent.host, record, "agent_renamed", old_name=old_name)
    return refreshed(world, agent)


def label(world: World, agent: Agent, set: Mapping[str, str], remove: Sequence[str] = ()) -> Agent:
    """Set and remove labels; concurrent calls keep each other's labels."""

    def edit(record: AgentRecord) -> AgentRecord:
        kept = {key: value for key, value in record.labels.items() if key not in remove}
        return record.replace(labels={**kept, **set})

    change(agent.host, agent.id, edit)
    return refreshed(world, agent)


def parse_labels(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `K=V` words; a key is short and plain, a value one printable line."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"label {pair!r} is not KEY=VALUE")
        if len(key) > 64 or not key.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise UsageError(f"label key {key[:80]!r} may hold only letters, digits, '-', '_', '.'")
        if len(value) > 4096 or not (value.isprintable() or value == ""):
            raise UsageError(f"label {key!r}: the value must be one printable line under 4 KB")
        found[key] = value
    return found
