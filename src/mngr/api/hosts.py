"""The methods of the public API that create, start, stop, destroy and audit hosts."""

from __future__ import annotations

from mngr.api.modules import audit, hosts, ledger, remembered
from mngr.api.targets import Targets
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.hosts.base import Host, HostRequest, Lease
    from mngr.hosts.ssh import SshHost
    from mngr.ops.hosting.audit import AuditFinding
    from mngr.ops.hosting.hosts import ProviderStatus


class Hosts(Targets):
    """Operations on hosts."""

    def host(self, name: str) -> Host:
        return hosts.find(self._world, name)

    def hosts(self) -> Sequence[Host]:
        """Return every known host of every provider."""
        return self._world.hosts()

    def find_host(self, name: str, provider: str) -> Host:
        """Return the named host, or the first of the provider; ask the user on first contact."""
        return self._world.host(name, provider)

    def ssh_host(self, name: str) -> SshHost:
        """Return a host that ssh can resolve, even if it was never used here."""
        provider = self._world.provider("ssh")
        host: SshHost = provider.find(name)  # type: ignore[attr-defined]  # only ssh has it
        return host

    def silence(self, host: Host) -> str:
        """Return why a host did not answer when it was last asked, or ""."""
        return self._world.silent.get(host.ref.id, "")

    def forget_host(self, host: Host) -> None:
        """Remove a host from the list; its agents keep running."""
        ledger.forget(self.home, host.ref.provider, host.ref.name)
        remembered.forget(self.home, host.ref.id)

    def makes_hosts(self, provider: str) -> bool:
        return hosts.capabilities(self._world, provider).new_hosts

    def unfinished_hosts(self) -> Sequence[tuple[Host, str]]:
        """Return hosts whose creation is in progress or was interrupted, with the reason."""
        return [(host, hosts.CUT) for host in hosts.unfinished(self._world)]

    def host_cost(self, host: Host) -> float | None:
        """Return the cost so far in dollars; None if it is free or has no price."""
        return hosts.cost(self._world, host)

    def host_rate(self, provider: str, build: Mapping[str, str]) -> float | None:
        """Return the price of a new host in dollars per second; None if unknown."""
        return hosts.engine(self._world, provider).rate(build)

    def made_hosts(self, provider: str) -> Mapping[str, float]:
        """Return the hosts that this home created with a provider, and when."""
        notes = ledger.known(self.home, provider)
        return {note.name: note.time for note in notes if note.handle}

    def discard_host(self, provider: str, name: str) -> None:
        """Destroy a host whose creation was interrupted, and its record."""
        hosts.engine(self._world, provider).destroy(name)

    def check_new_host(self, provider: str, request: HostRequest) -> None:
        """Raise UsageError unless the provider accepts the request for a host."""
        hosts.engine(self._world, provider).check_request(request)

    def create_host(self, provider: str, request: HostRequest) -> Host:
        return hosts.create(self._world, provider, request)

    def check_restarts(self, host: Host) -> None:
        """Raise UsageError unless the host can be stopped and started."""
        hosts.restartable(self._world, host)

    def stop_host(self, name: str) -> None:
        hosts.stop(self._world, hosts.find(self._world, name))

    def start_host(self, name: str) -> Sequence[Agent]:
        """Start a host; return the agents that were started with it."""
        return hosts.start(self._world, hosts.find(self._world, name))

    def snapshot_host(self, name: str) -> str:
        """Save the file system of a host; return the image."""
        return hosts.snapshot(self._world, hosts.find(self._world, name))

    def destroy_host(self, name: str, *, force: bool = False, keep: bool = True) -> str:
        """Destroy a host; return the image it was saved as, if it had agents."""
        host = hosts.find(self._world, name)
        return hosts.destroy(self._world, host, force=force, keep=keep)

    def agents_of_host(self, name: str) -> Sequence[Agent]:
        return hosts.agents_of(self._world, hosts.find(self._world, name))

    def providers(self) -> Sequence[ProviderStatus]:
        return hosts.providers(self._world)

    def leases(self) -> Mapping[str, Sequence[Lease]]:
        """Return the leases of this home, by provider."""
        return audit.leases(self._world)

    def audit_hosts(self, provider: str = "") -> Sequence[AuditFinding]:
        return audit.audit(self._world, provider)

    def settle_host(self, finding: AuditFinding) -> None:
        """Resolve a finding: destroy an unknown host, or forget one that no longer exists."""
        audit.settle(self._world, finding)
