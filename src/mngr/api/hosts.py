"""Hosts in the public API: make, start, stop, end and audit them."""

from __future__ import annotations

from mngr.api.targets import Targets
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.hosts.base import Host, HostRequest, Lease
    from mngr.ops.hosting.audit import Finding
    from mngr.ops.hosting.hosts import Standing


class Hosts(Targets):
    """The hosts themselves."""

    def host(self, name: str) -> Host:
        from mngr.ops.hosting import hosts

        return hosts.find(self.world, name)

    def makes_hosts(self, provider: str) -> bool:
        from mngr.ops.hosting import hosts

        return hosts.capabilities(self.world, provider).new_hosts

    def unfinished_hosts(self) -> Sequence[tuple[Host, str]]:
        """Hosts that are being made or whose creation was cut short, each with that reason."""
        from mngr.ops.hosting import hosts

        return [(host, hosts.CUT) for host in hosts.unfinished(self.world)]

    def host_cost(self, host: Host) -> float | None:
        """Dollars so far; None if it is free or has no price."""
        from mngr.ops.hosting import hosts

        return hosts.cost(self.world, host)

    def host_rate(self, provider: str, build: Mapping[str, str]) -> float | None:
        """Dollars per second of a host that a provider makes; None if no price is known."""
        from mngr.ops.hosting import hosts

        return hosts.engine(self.world, provider).rate(build)

    def made_hosts(self, provider: str) -> Mapping[str, float]:
        """The hosts that this home made with a provider, and when."""
        from mngr.hosts import ledger

        notes = ledger.known(self.world.home, provider)
        return {note.name: note.time for note in notes if note.handle}

    def discard_host(self, provider: str, name: str) -> None:
        """End a host whose creation was cut short, and forget it."""
        from mngr.ops.hosting import hosts

        hosts.engine(self.world, provider).destroy(name)

    def create_host(self, provider: str, request: HostRequest) -> Host:
        from mngr.ops.hosting import hosts

        return hosts.create(self.world, provider, request)

    def stop_host(self, name: str) -> None:
        from mngr.ops.hosting import hosts

        hosts.stop(self.world, hosts.find(self.world, name))

    def start_host(self, name: str) -> Sequence[Agent]:
        """The agents that were started with it."""
        from mngr.ops.hosting import hosts

        return hosts.start(self.world, hosts.find(self.world, name))

    def snapshot_host(self, name: str, label: str = "") -> str:
        """The image that its file system was kept as."""
        from mngr.ops.hosting import hosts

        return hosts.snapshot(self.world, hosts.find(self.world, name), label)

    def destroy_host(self, name: str, *, force: bool = False, keep: bool = True) -> str:
        """The image that it was kept as, if it had agents and its provider can."""
        from mngr.ops.hosting import hosts

        host = hosts.find(self.world, name)
        return hosts.destroy(self.world, host, force=force, keep=keep)

    def agents_of_host(self, name: str) -> Sequence[Agent]:
        from mngr.ops.hosting import hosts

        return hosts.agents_of(self.world, hosts.find(self.world, name))

    def providers(self) -> Sequence[Standing]:
        from mngr.ops.hosting import hosts

        return hosts.providers(self.world)

    def leases(self) -> Mapping[str, Sequence[Lease]]:
        """By provider, what it has of ours."""
        from mngr.ops.hosting import audit

        return audit.leases(self.world)

    def audit_hosts(self, provider: str = "") -> Sequence[Finding]:
        from mngr.ops.hosting import audit

        return audit.audit(self.world, provider)

    def settle_host(self, finding: Finding) -> None:
        """End over there what should not be, and forget here what is not."""
        from mngr.ops.hosting import audit

        audit.settle(self.world, finding)
