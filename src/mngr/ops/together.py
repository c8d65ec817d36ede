"""Read many hosts in parallel, each with a deadline."""

from __future__ import annotations

import time
from _thread import allocate_lock, start_new_thread  # importing threading takes 2 ms

from mngr.errors import Unreachable
from mngr.hosts.base import Host, HostReading
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SLACK = 2.0
"""Seconds beyond its deadline that a host may take to end the programs it started."""


def readings(world: World, hosts: Sequence[Host], ids: Sequence[str] | None) -> list[HostReading]:
    """Return one reading per host, in order; a host over `hosts.timeout` gets an error reading."""
    patience = world.config.seconds("hosts.timeout")
    found: dict[int, HostReading] = {}
    failed: list[BaseException] = []

    def look(number: int, host: Host) -> None:
        try:
            found[number] = world.reading(host, ids)
        except BaseException as error:  # raised again in the calling thread
            failed.append(error)
        finally:
            ends[number].release()

    ends = [allocate_lock() for _ in hosts]
    for number, host in enumerate(hosts):
        host.patience = patience
        ends[number].acquire()
        # A host that ignores its deadline does not keep the command from ending.
        start_new_thread(look, (number, host))
    deadline = time.monotonic() + patience + SLACK
    for end in ends:
        end.acquire(timeout=max(0.0, deadline - time.monotonic()))
    if failed:
        raise failed[0]
    return [found.get(n) or _late(world, host, patience) for n, host in enumerate(hosts)]


def _late(world: World, host: Host, patience: float) -> HostReading:
    error = Unreachable(f"host {host.ref.name} did not answer within {patience:g} s")
    world.note(host.ref.name, error)
    return HostReading(error=error.message)
