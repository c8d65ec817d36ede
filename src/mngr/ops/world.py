"""One home directory of mngr: its hosts, its agent types, its readings."""

from __future__ import annotations

import os

from mngr.errors import MngrError, NotFound, UsageError, suggestion
from mngr.hosts.base import Capabilities, HostReading, is_here
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from mngr.agents.base import AgentType
    from mngr.hosts.base import Host, HostRef, Provider
    from mngr.model.records import AgentRecord
    from mngr.model.struct import Json
    from mngr.plugins.registry import Registry
    from mngr.settings.layers import Config


class HostProblem(Struct):
    """A provider or host that did not answer; reported without failing the others."""

    who: str
    problem: str


class World:
    """The context of every operation. `problems` collects remarks for stderr."""

    def __init__(self, config: Config, registry: Registry) -> None:
        self.config = config
        self.registry = registry
        self.home = config.home
        self.problems: list[HostProblem] = []
        self.asks: Callable[[str], bool] | None = None
        """Asks the user a question; None without a terminal."""
        self.silent: dict[str, str] = {}
        """Hosts that did not answer when they were last asked, by id, and why."""
        self._hosts: list[Host] | None = None
        self._types: dict[str, AgentType] = {}

    def hosts(self) -> list[Host]:
        """Return every host of every provider; record a problem for a provider that fails."""
        if self._hosts is None:
            # Assigned at once: other threads never see a partial list.
            self._hosts = self._listed(self.registry.names("provider"))
        return self._hosts

    def hosts_of(self, providers: Collection[str]) -> list[Host]:
        """Return the hosts of some providers; the other providers are not asked."""
        if self._hosts is None:
            return self._listed(providers)
        return [host for host in self._hosts if host.ref.provider in providers]

    def hosts_now(self) -> list[Host]:
        """Ask the providers again, and return every host; known ones are the same objects."""
        known = {host.ref.id: host for host in self.hosts()}
        found = self._listed(self.registry.names("provider"))
        self._hosts = [known.get(host.ref.id, host) for host in found]
        return self._hosts

    def _listed(self, providers: Iterable[str]) -> list[Host]:
        found: list[Host] = []
        for name in filter(self._used, providers):
            try:
                found += self.provider(name).hosts()
            except Exception as error:  # a plugin's provider can raise anything
                self.note(name, error)
                found += self._remembered(name, error)
        return found

    def _used(self, provider: str) -> bool:
        """Return whether a provider can have hosts; loading the others would slow every command."""
        noted = os.path.join(self.home, "hosts", provider)
        named = provider not in self.registry.noted or self.config.table(f"providers.{provider}")
        return bool(named) or os.path.isdir(noted)

    def _remembered(self, provider: str, error: Exception) -> list[Host]:
        """Return the hosts that a failed provider had, so that their agents are still listed."""
        from mngr.ops.look import remembered

        return remembered.hosts(self.home, provider, _told(error))

    def add(self, host: Host) -> None:
        """Add a host that was found or created just now."""
        self.hosts().append(host)  # atomic, since several threads may create hosts

    def drop(self, ref: HostRef) -> None:
        """Remove a host that no longer exists."""
        self._hosts = [host for host in self.hosts() if host.ref != ref]

    def provider(self, name: str) -> Provider:
        provider: Provider = self.registry.load("provider", name)(self.config)  # type: ignore[operator]
        return provider

    def host(self, name: str = "", provider: str = "") -> Host:
        """Return the named host, the first host of the provider, or the local one by default."""
        providers = self.registry.names("provider")
        if provider and provider not in providers:
            if not name:
                hint = suggestion(provider, providers, f"there are {', '.join(providers)}")
                raise UsageError(f"unknown provider {provider!r}", hint)
            name, provider = f"{name}.{provider}", ""  # box.example.com names no provider
        matches = [
            host
            for host in self.hosts()
            if name in ("", host.ref.name, host.ref.id)
            and (provider or ("local" if not name else host.ref.provider)) == host.ref.provider
        ]
        if not matches and name and (found := self._found(name, provider)):
            matches = [found]
        if not matches:
            known = [f"{host.ref.name}.{host.ref.provider}" for host in self.hosts()]
            wanted = f"{name}.{provider}" if provider else name
            hint = f"known hosts: {', '.join(known)}; add an ssh host to ~/.ssh/config"
            for each in filter(providers.__contains__, (provider, name)):
                if getattr(self.provider(each), "capabilities", Capabilities()).new_hosts:
                    hint = f"for a new host of {each}, write @.{each}"
            if not name and hasattr(self.provider(provider), "find"):  # it lists only some hosts
                hint = f"name one, as in foo@HOST, or list it in `providers.{provider}.hosts`"
            unknown = f"no host {wanted!r}" if name else f"the provider {provider} has no host"
            raise NotFound(unknown, hint)
        meet = getattr(matches[0], "meet", None)
        if meet is not None:
            meet(self.asks)
        return matches[0]

    def _found(self, name: str, provider: str) -> Host | None:
        """Return a host that was never used here, if a provider can reach it."""
        for each in [provider] if provider else self.registry.names("provider"):
            find = getattr(self.provider(each), "find", None)
            if find is not None:
                try:
                    host: Host = find(name)
                    self.add(host)
                    return host
                except NotFound:
                    continue
        return None

    def agent_type(self, name: str) -> AgentType:
        if name not in self._types:
            known = self.registry.names("agent_type")
            if name not in known:
                hint = suggestion(name, known, f"known types: {', '.join(known)}")
                raise UsageError(f"unknown agent type {name!r}", hint)
            self._types[name] = self.registry.load("agent_type", name)()  # type: ignore[operator]
        return self._types[name]

    def known_type(self, name: str) -> AgentType:
        """Return the type, or `command` for an agent whose type is from a removed plugin."""
        try:
            return self.agent_type(name)
        except MngrError:
            return self.agent_type("command")

    def readings(
        self, ids: Sequence[str] | None = None, hosts: Sequence[Host] | None = None
    ) -> list[tuple[Host, HostReading]]:
        """Return every host's reading; for a host that does not answer it contains the reason."""
        hosts = self.hosts() if hosts is None else hosts
        if len(hosts) == 1:
            found = [self.reading(hosts[0], ids)]
        else:
            from mngr.ops import together

            found = together.readings(self, hosts, ids)
        for host, reading in zip(hosts, found, strict=True):
            self.silent.pop(host.ref.id, "")
            if reading.error:
                self.silent[host.ref.id] = reading.error
        return list(zip(hosts, found, strict=True))

    def reading(self, host: Host, ids: Sequence[str] | None) -> HostReading:
        try:
            return host.read(ids)
        except Exception as error:
            if not isinstance(error, MngrError) and is_here(host):
                raise  # a bug, not an unreachable host
            self.note(host.ref.name, error)
            return HostReading(error=_told(error))

    def note(self, who: str, error: Exception) -> None:
        """Record a problem once, for any number of agents."""
        footnote = HostProblem(who=who, problem=_told(error))
        if footnote not in self.problems:
            self.problems.append(footnote)

    def emit(self, event: str, host: Host, record: AgentRecord, **more: str) -> None:
        """Notify the plugins of an event of an agent."""
        payload: dict[str, Json] = {
            "event": event,
            "agent_id": record.id,
            "agent_name": record.name,
            "agent_type": record.type,
            "host_id": host.ref.id,
            "host_name": host.ref.name,
            "provider_name": host.ref.provider,
            "home": self.home,
            **more,
        }
        self.registry.emit(event, payload)


def _told(error: Exception) -> str:
    """Return one line for a problem, even for an unexpected error of a plugin."""
    text = str(error) if isinstance(error, MngrError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
