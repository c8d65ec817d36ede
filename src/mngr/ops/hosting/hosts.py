"""Create, start, stop and end hosts."""

from __future__ import annotations

import os

from mngr.errors import MngrError, NotFound, Refused, UsageError
from mngr.hosts import ledger
from mngr.hosts.base import Capabilities, HostRef, HostRequest
from mngr.model.state import ALIVE
from mngr.model.struct import Struct
from mngr.ops.lifecycle import names, running
from mngr.ops.look.listing import agents
from mngr.ops.look.remembered import AbsentHost
from mngr.ops.steps import step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.base import Host
    from mngr.hosts.engines.engine import Engine
    from mngr.hosts.ledger import HostNote
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World


CUT = "it is being created, or its creation was interrupted"


class ProviderStatus(Struct):
    """Whether a provider can be used on this machine."""

    name: str
    usable: bool
    new_hosts: bool
    hosts: int
    reason: str = ""


def providers(world: World) -> list[ProviderStatus]:
    """Return the status of all providers, asked in parallel so that none delays another."""
    from concurrent.futures import ThreadPoolExecutor

    known = world.registry.names("provider")
    with ThreadPoolExecutor(max_workers=len(known)) as pool:
        return list(pool.map(lambda name: _status(world, name), known))


def _status(world: World, name: str) -> ProviderStatus:
    try:
        provider = world.provider(name)
        why = getattr(provider, "why_not", lambda: "")()
        new = capabilities(world, name).new_hosts
        count = len(provider.hosts())
    except Exception as error:  # a plugin's provider can raise anything
        return ProviderStatus(name=name, usable=False, new_hosts=False, hosts=0, reason=str(error))
    return ProviderStatus(name=name, usable=not why, new_hosts=new, hosts=count, reason=why)


def capabilities(world: World, name: str) -> Capabilities:
    found: Capabilities = getattr(world.provider(name), "capabilities", Capabilities())
    return found


def engine(world: World, name: str) -> Engine:
    """Return the provider with that name; raise if it cannot create hosts."""
    if not name:
        raise UsageError("no provider given for the new host", "use --provider NAME")
    provider = world.provider(name)
    if not capabilities(world, name).new_hosts:
        hint = "see `mngr provider list`"
        raise UsageError(f"the provider {name!r} cannot create hosts", hint)
    made: Engine = provider  # type: ignore[assignment]
    return made


def create(world: World, provider: str, request: HostRequest) -> Host:
    """Create and return a running host; it is recorded before the engine is called."""
    host = engine(world, provider).create(request, step)
    world.add(host)
    _emit(world, "host_created", host.ref)
    return host


def _emit(world: World, event: str, ref: HostRef) -> None:
    told = {"host_id": ref.id, "host_name": ref.name, "provider_name": ref.provider}
    world.registry.emit(event, {"event": event, "home": world.home, **told})


def fresh(
    world: World, provider: str, agent: str, request: HostRequest, *, make: bool = True
) -> Host:
    """Create a host for an agent, with the agent's name if that is free."""
    maker = engine(world, provider)
    name = request.name or agent
    if not name or (not request.name and ledger.read(world.home, maker.name, name)):
        name = names.random_name()
    if not make:
        ref = HostRef(id="", name=name, provider=provider, tags={**request.tags})
        return AbsentHost(ref, "it is not created yet")
    return create(world, provider, request.replace(name=name))


def holding(world: World, provider: str, agent: str) -> Host | None:
    """Return the host of this provider that has an agent with that name."""
    found = (each for each in agents(world) if each.name == agent)
    return next((each.host for each in found if each.host.ref.provider == provider), None)


def abandon(world: World, host: Host) -> None:
    """End a host whose agent could not be created; if that fails, `host audit` finds it later."""
    try:
        engine(world, host.ref.provider).destroy(host.ref.name)
        world.drop(host.ref)
    except MngrError as error:
        world.note(host.ref.name, error)


def destroy(world: World, host: Host, *, force: bool = False, keep: bool = True) -> str:
    """End a host and everything on it; return the image that was saved, if any.

    Raise without `force` if the host has agents. With `keep`, a host with agents is saved as an
    image first if its engine supports that.
    """
    if not capabilities(world, host.ref.provider).new_hosts:
        name = host.ref.name
        if host.ref.provider == "local":
            raise Refused(f"host {name} is this machine and cannot be destroyed")
        hint = f"to remove it from the list: `mngr host forget {name}`"
        raise Refused(f"host {name} was not created by mngr and cannot be destroyed", hint)
    maker = engine(world, host.ref.provider)
    mine = agents_of(world, host)
    if mine and not force:
        listed = ", ".join(agent.name for agent in mine[:5])
        raise Refused(
            f"host {host.ref.name} has agents: {listed}",
            "destroy them first, or use --force to destroy the host with them",
        )
    image = ""
    if mine and keep and maker.capabilities.snapshots:
        image = _kept(maker, host)
    maker.destroy(host.ref.name)
    world.drop(host.ref)
    _emit(world, "host_destroyed", host.ref)
    return image


def _kept(maker: Engine, host: Host) -> str:
    """Save an image of the host; return its name, or "" if the host no longer exists."""
    note = maker.note(host.ref.name)
    if maker.lease(note) is None:
        return ""
    return maker.snapshot(note.handle, f"mngr-kept:{note.name}-{os.urandom(4).hex()}")


def cost(world: World, host: Host) -> float | None:
    """Return the cost of a host so far in dollars; None if it is free or has no price."""
    if not capabilities(world, host.ref.provider).new_hosts:
        return None
    maker = engine(world, host.ref.provider)
    note = ledger.read(world.home, maker.name, host.ref.name)
    return maker.cost(note) if note else None


def snapshot(world: World, host: Host) -> str:
    """Save the file system of a host as an image; return its name."""
    if not capabilities(world, host.ref.provider).snapshots:
        raise UsageError(
            f"host {host.ref.name} cannot be saved as an image",
            "to save the work of an agent: `mngr snapshot create AGENT`",
        )
    maker = engine(world, host.ref.provider)
    label = f"mngr-snapshot:{host.ref.name}-{os.urandom(4).hex()}"
    return maker.snapshot(_made(maker, host).handle, label)


def unfinished(world: World) -> list[Host]:
    """Return hosts that are being created, or whose creation was interrupted."""
    notes = (
        note
        for name in world.registry.names("provider")
        for note in ledger.known(world.home, name)
        if note.made and not note.handle
    )
    refs = (HostRef(id=n.id, name=n.name, provider=n.provider, tags={**n.tags}) for n in notes)
    return [AbsentHost(ref, CUT) for ref in refs]


def find(world: World, name: str) -> Host:
    word, _, provider = name.rpartition(".") if "." in name else (name, "", "")
    every = [*world.hosts(), *unfinished(world)]
    matches = [host for host in every if name in (host.ref.name, host.ref.id)] or [
        each for each in every if (each.ref.name, each.ref.provider) == (word, provider)
    ]
    if not matches:
        known = ", ".join(host.ref.name for host in world.hosts())
        raise NotFound(f"no host {name!r}", f"known hosts: {known}")
    if len(matches) > 1:
        listed = ", ".join(f"{host.ref.name}.{host.ref.provider}" for host in matches)
        raise UsageError(f"{name!r} is ambiguous: {listed}", "add the provider: HOST.PROVIDER")
    return matches[0]


def agents_of(world: World, host: Host) -> Sequence[Agent]:
    return agents(world, None, [host])


def stop(world: World, host: Host) -> None:
    """Stop the agents of a host, then the host; record which were alive, for `start`."""
    maker = restartable(world, host)
    alive = [agent for agent in agents_of(world, host) if agent.state in ALIVE]
    running.stop_many(world, alive)
    agents_of(world, host)  # so that their current state is remembered
    note = _made(maker, host)
    # An earlier stop that was killed half-way has already recorded the agents it stopped.
    ids = {*note.agents, *(agent.id for agent in alive)}
    ledger.rewrite(world.home, note.replace(agents=tuple(sorted(ids))))
    step("host_agents_stopped")
    maker.stop(note.handle)


def start(world: World, host: Host) -> list[Agent]:
    """Start a host, and the agents that were alive when it was stopped."""
    maker = restartable(world, host)
    note = _made(maker, host)
    maker.start(note.handle)
    step("host_started")
    mine = [agent for agent in agents_of(world, host) if agent.id in note.agents]
    started = [running.start(world, agent) for agent in mine]
    ledger.rewrite(world.home, note.replace(agents=()))
    return started


def wake(world: World, host: Host) -> bool:
    """Start a stopped host for an agent; return whether it was stopped and could be started."""
    if not capabilities(world, host.ref.provider).restarts:
        return False
    maker = engine(world, host.ref.provider)
    note = maker.note(host.ref.name)
    lease = maker.lease(note)
    if lease is None or lease.running:
        return False
    maker.start(note.handle)
    return True


def _made(maker: Engine, host: Host) -> HostNote:
    note = maker.note(host.ref.name)
    if not note.handle:
        raise MngrError(
            f"host {note.name}: {CUT}", f"to remove it: `mngr host destroy {note.name}`"
        )
    if maker.lease(note) is None:
        gone = f"host {note.name} is gone from {maker.name}"
        raise NotFound(gone, f"remove it with `mngr host destroy {note.name}`")
    return note


def restartable(world: World, host: Host) -> Engine:
    """Return the host's engine; raise if it cannot stop and start hosts."""
    if not capabilities(world, host.ref.provider).restarts:
        raise UsageError(
            f"host {host.ref.name} cannot be stopped or started: the provider "
            f"{host.ref.provider} does not support this",
            "stop and start its agents with `mngr stop` and `mngr start`",
        )
    return engine(world, host.ref.provider)
