"""Compare the recorded hosts with the providers' lists, to find every host that costs money."""

from __future__ import annotations

import time

from mngr.errors import MngrError
from mngr.hosts import ledger
from mngr.hosts.base import Lease
from mngr.hosts.engines import asking
from mngr.model.struct import Struct
from mngr.ops.hosting import hosts
from mngr.ops.world import World

PATIENCE = 60.0
"""Seconds past its maximum age that a host may take to end itself."""


class AuditFinding(Struct):
    """One line of an audit."""

    provider: str
    name: str
    handle: str
    host_id: str
    problem: str
    """Empty if the records and the provider agree."""
    running: bool = False
    ours: bool = True
    """Whether this home created it."""


def leases(world: World, provider: str = "") -> dict[str, list[Lease]]:
    """Return the leases of this home by provider; record a problem if one does not answer."""
    from concurrent.futures import ThreadPoolExecutor

    used = _engines(world, provider)
    found: dict[str, list[Lease]] = {}
    with ThreadPoolExecutor(max_workers=max(1, len(used))) as pool:
        asked = {name: pool.submit(hosts.engine(world, name).leases) for name in used}
        for name, answer in asked.items():
            try:
                found[name] = answer.result()
            except MngrError as error:
                world.note(name, error)
    return found


def _engines(world: World, provider: str) -> list[str]:
    """Return the names of the engines used in this home; asking unused ones only prints errors."""
    known = [provider] if provider else world.registry.names("provider")
    used = [name for name in known if provider or any(ledger.known(world.home, name))]
    return [name for name in used if hosts.capabilities(world, name).new_hosts]


def audit(world: World, provider: str = "") -> list[AuditFinding]:
    """Return one finding per host. Providers that do not answer are left out."""
    found = []
    mine = ledger.controller(world.home)
    for name, listed in leases(world, provider).items():
        theirs = {lease.host_id: lease for lease in listed}
        notes = list(ledger.known(world.home, name))
        found += [_compared(world.home, note, theirs.pop(note.id, None)) for note in notes]
        # A host that has ended and cannot be started again costs nothing.
        kept = hosts.capabilities(world, name).restarts
        rest = [lease for lease in theirs.values() if lease.running or kept]
        found += [_unknown(name, lease, mine) for lease in rest]
    return found


def _unknown(provider: str, lease: Lease, mine: str) -> AuditFinding:
    ours = lease.controller == mine
    problem = "created here, but its record is missing" if ours else "created by another home"
    return AuditFinding(
        provider=provider, name=lease.name, handle=lease.handle, host_id=lease.host_id,
        running=lease.running, problem=problem, ours=ours,
    )  # fmt: skip


def _compared(home: str, note: ledger.HostNote, lease: Lease | None) -> AuditFinding:
    problem = ""
    if not note.handle:
        cut = "its creation was interrupted"
        pending = asking.pending(home, note.id, listed=lease is not None)
        problem = pending or (cut if lease else f"never created: {cut}")
    elif lease is None:
        problem = "no longer exists at the provider"
    elif lease.running and note.lifetime and time.time() > note.time + note.lifetime + PATIENCE:
        problem = "past its maximum age"
    return AuditFinding(
        provider=note.provider, name=note.name, handle=lease.handle if lease else "",
        host_id=note.id, problem=problem, running=bool(lease and lease.running),
    )  # fmt: skip


def settle(world: World, finding: AuditFinding) -> None:
    """End a host that should not exist, or forget a host that no longer exists."""
    maker = hosts.engine(world, finding.provider)
    note = ledger.read(world.home, finding.provider, finding.name)
    if note is None or note.id != finding.host_id:
        maker.remove(finding.handle)
    elif note.handle and not finding.handle:
        ledger.forget(world.home, finding.provider, finding.name)
    else:
        maker.end(note)
