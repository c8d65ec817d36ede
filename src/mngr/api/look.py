"""The methods of the public API that read: list, capture, events, transcripts, usage, wait."""

from __future__ import annotations

from mngr.api.modules import (
    answering,
    capture,
    changes,
    columns,
    conversation,
    event_log,
    listing,
    logins,
    output,
    remembered,
    usage,
    waiting,
)
from mngr.api.targets import Targets
from mngr.model.state import State
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from mngr.agents.base import Turn
    from mngr.model.struct import Json
    from mngr.ops.limits.usage import Usage
    from mngr.ops.limits.watcher import Limits
    from mngr.ops.look.changes import Changes


class Look(Targets):
    """Agents, their states and their output."""

    def list(
        self, ids: Sequence[str] | None = None, *, providers: Collection[str] | None = None
    ) -> Sequence[Agent]:
        """Return every agent; remarks about hosts that do not answer are in `problems`.

        With `providers`, only the hosts of these are read.
        """
        hosts = None if providers is None else self._world.hosts_of(providers)
        return listing.agents(self._world, ids, hosts)

    @property
    def problems(self) -> Sequence[str]:
        return [f"{each.who}: {each.problem}" for each in self._world.problems]

    def resolve(self, targets: Iterable[str]) -> Sequence[Agent]:
        return listing.resolve(self._world, tuple(targets))

    def last_seen(self, target: str) -> Agent | None:
        """Return a remote agent as last read, if a command there can check that it is unchanged."""
        return remembered.meant(self._world, target)

    def columns(self, agents: Sequence[Agent], names: Sequence[str]) -> Sequence[dict[str, Json]]:
        """Return the named columns that cost more than a reading, such as `dirty`, per agent."""
        return columns.columns(self._world, agents, names)

    def changes(self, agents: Sequence[Agent]) -> Sequence[Changes | None]:
        """Return the number of commits and lines that each agent has changed."""
        return changes.changes(self.home, agents)

    def unread(self, agent: Agent) -> Sequence[str]:
        """Return the messages that its program has queued, and loses if it is stopped."""
        record = agent.evidence.record
        return self._world.known_type(record.type).unread(agent.evidence) if record else ()

    def login_remarks(self, agent: Agent) -> Iterator[str]:
        """Yield remarks about a login that the agent shares with others."""
        return logins.remarks(self._world, agent)

    def metered(self, type: str) -> bool:
        """Return whether agents of this type report what they use."""
        return bool(self._world.agent_type(type).meter())

    def capture(
        self, target: str | Agent, *, window: str = "", full: bool = False, ansi: bool = False
    ) -> str:
        return capture.capture(self.get(target), window=window, full=full, ansi=ansi)

    def printed(self, target: str | Agent) -> bytes:
        """Return what its program wrote to its terminal, as far as the log goes back."""
        return output.past(self.get(target))

    def follow_printed(self, target: str | Agent) -> Iterator[bytes]:
        """Yield what `printed` returns, then new output, until the agent has ended."""
        return output.follow(self._world, self.get(target))

    def events(self, target: str | Agent, *, follow: bool = False) -> Iterator[dict[str, Json]]:
        agent = self.get(target)
        return event_log.follow(agent) if follow else iter(event_log.past(agent))

    def transcript(self, target: str | Agent) -> Sequence[Turn]:
        """Return the conversation, oldest first; empty if its program stores none."""
        return conversation.transcript(self._world, self._agent(target))

    def conversation(
        self, target: str | Agent, *, follow: bool = False
    ) -> Iterable[dict[str, Json]]:
        """Return the conversation as records with ids; with `follow`, until the agent has ended."""
        look = conversation.follow if follow else conversation.past
        return look(self._world, self._agent(target))

    def usage(self, agents: Iterable[Agent]) -> dict[str, Usage]:
        """Return the usage by id, for agents that report it."""
        return usage.of(self._world, tuple(agents))

    def limits(self, target: str | Agent) -> Limits:
        from mngr.ops.limits.watcher import Limits

        return Limits.of(self._agent(target).record)

    def pending(self) -> Sequence[tuple[Agent, str]]:
        """Return every agent with an open permission request, and its question."""
        return [(each, answering.question(each) or "") for each in answering.pending(self.list())]

    def question(self, target: str | Agent) -> str:
        """Return the open permission request; raise Refused if there is none."""
        return answering.require_question(self.get(target))

    def observe(self, *, discovery_only: bool = False) -> Iterator[dict[str, Json]]:
        return waiting.observe(self._world, discovery_only=discovery_only)

    def wait(
        self,
        targets: Iterable[str | Agent],
        states: Sequence[State] = (),
        *,
        any_one: bool = False,
        timeout: float | None = None,
    ) -> Sequence[Agent]:
        """Wait until all (or any) are in one of `states`, by default ended or waiting for input.

        An agent that has ended in another state is returned too.
        """
        agents = [self._agent(target) for target in targets]
        chosen = states or waiting.DEFAULT_STATES
        return waiting.wait(self._world, agents, chosen, any_one=any_one, timeout=timeout)
