"""The methods of the public API that create, start, stop, destroy and audit hosts."""

from __future__ import annotations

from mngr.api.targets import Targets
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.hosts.base import Host, HostRequest, Lease
    from mngr.ops.hosting.audit import AuditFinding
    from mngr.ops.hosting.hosts import ProviderStatus


class Hosts(Targets):
    """Operations on hosts."""

    def host(self, name: str) -> Host:
        from mngr.ops.hosting import hosts

        return hosts.find(self.world, name)

    def makes_hosts(self, provider: str) -> bool:
        from mngr.ops.hosting import hosts

        return hosts.capabilities(self.world, provider).new_hosts

    def unfinished_hosts(self) -> Sequence[tuple[Host, str]]:
        """Return hosts whose creation is in progress or was interrupted, with the reason."""
        from mngr.ops.hosting import hosts

        return [(host, hosts.CUT) for host in hosts.unfinished(self.world)]

    def host_cost(self, host: Host) -> float | None:
        """Return the cost so far in dollars; None if it is free or has no price."""
        from mngr.ops.hosting import hosts

        return hosts.cost(self.world, host)

    def host_rate(self, provider: str, build: Mapping[str, str]) -> float | None:
        """Return the price of a new host in dollars per second; None if unknown."""
        from mngr.ops.hosting import hosts

        return hosts.engine(self.world, provider).rate(build)

    def made_hosts(self, provider: str) -> Mapping[str, float]:
        """Return the hosts that this home created with a provider, and when."""
        from mngr.hosts import ledger

        notes = ledger.known(self.world.home, provider)
        return {note.name: note.time for note in notes if note.handle}

    def discard_host(self, provider: str, name: str) -> None:
        """Destroy a host whose creation was interrupted, and its record."""
        from mngr.ops.hosting import hosts

        hosts.engine(self.world, provider).destroy(name)

    def create_host(self, provider: str, request: HostRequest) -> Host:
        from mngr.ops.hosting import hosts

        return hosts.create(self.world, provider, request)

    def stop_host(self, name: str) -> None:
        from mngr.ops.hosting import hosts

        hosts.stop(self.world, hosts.find(self.world, name))

    def start_host(self, name: str) -> Sequence[Agent]:
        """Start a host; return the agents that were started with it."""
        from mngr.ops.hosting import hosts

        return hosts.start(self.world, hosts.find(self.world, name))

    def snapshot_host(self, name: str, label: str = "") -> str:
        """Save the file system of a host; return the image."""
        from mngr.ops.hosting import hosts

        return hosts.snapshot(self.world, hosts.find(self.world, name), label)

    def destroy_host(self, name: str, *, force: bool = False, keep: bool = True) -> str:
        """Destroy a host; return the image it was saved as, if it had agents."""
        from mngr.ops.hosting import hosts

        host = hosts.find(self.world, name)
        return hosts.destroy(self.world, host, force=force, keep=keep)

    def agents_of_host(self, name: str) -> Sequence[Agent]:
        from mngr.ops.hosting import hosts

        return hosts.agents_of(self.world, hosts.find(self.world, name))

    def providers(self) -> Sequence[ProviderStatus]:
        from mngr.ops.hosting import hosts

        return hosts.providers(self.world)

    def leases(self) -> Mapping[str, Sequence[Lease]]:
        """Return the leases of this home, by provider."""
        from mngr.ops.hosting import audit

        return audit.leases(self.world)

    def audit_hosts(self, provider: str = "") -> Sequence[AuditFinding]:
        from mngr.ops.hosting import audit

        return audit.audit(self.world, provider)

    def settle_host(self, finding: AuditFinding) -> None:
        """Resolve a finding: destroy an unknown host, or forget one that no longer exists."""
        from mngr.ops.hosting import audit

        audit.settle(self.world, finding)
