"""The public Python API: the verbs of the command line, typed, without printing.

from mngr.api import CreateRequest, Mngr

m = Mngr()
made = m.create(CreateRequest(address="tests", args=("make", "test"), source="/src/project"))
m.wait([made.agent])
"""

from __future__ import annotations

import os

from mngr.api_work import Work
from mngr.config import Config
from mngr.ops.listing import Agent
from mngr.ops.world import World
from mngr.plugins import Registry, load_registry
from mngr.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Literal

    from mngr.agents.base import Receipt, Turn
    from mngr.git import Repo
    from mngr.hosts.base import Host, HostRequest, Lease
    from mngr.ops.audit import Finding
    from mngr.ops.create import Created, CreateRequest
    from mngr.ops.execute import ExecResult
    from mngr.ops.hosting import Standing
    from mngr.ops.leftover import Leftover
    from mngr.ops.replies import Reply
    from mngr.ops.types import Derived
    from mngr.ops.usage import Usage
    from mngr.ops.watcher import Limits
    from mngr.ops.workdir import Plan
    from mngr.struct import Json

__all__ = ["Agent", "CreateRequest", "Created", "HostRequest", "Leftover", "Mngr", "State"]


def __getattr__(name: str) -> object:
    """What only creating needs is imported when asked for: looking is what start-up is for."""
    if name in ("CreateRequest", "Created"):
        from mngr.ops import create

        return getattr(create, name)
    if name == "HostRequest":
        from mngr.hosts.base import HostRequest

        return HostRequest
    if name == "Leftover":
        from mngr.ops import leftover

        return leftover.Leftover
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class Mngr(Work):
    """One home. Agents are named by name, id or address, or given as an Agent."""

    def __init__(self, config: Config | None = None, registry: Registry | None = None) -> None:
        config = config or default_config()
        self.world = World(config, registry or load_registry(config))

    # look

    def list(self, ids: Sequence[str] | None = None) -> Sequence[Agent]:
        """Every agent; footnotes about silent hosts are in `problems`."""
        from mngr.ops import listing

        return listing.agents(self.world, ids)

    @property
    def problems(self) -> Sequence[str]:
        return [f"{each.who}: {each.problem}" for each in self.world.problems]

    def resolve(self, targets: Iterable[str]) -> Sequence[Agent]:
        from mngr.ops import listing

        return listing.resolve(self.world, tuple(targets))

    def last_seen(self, target: str) -> Agent | None:
        """An agent of another host that can be acted on without looking first, if the host makes
        sure that it has not changed since."""
        from mngr.ops import remembered

        return remembered.meant(self.world, target)

    def capture(
        self, target: str | Agent, *, window: str = "", full: bool = False, ansi: bool = False
    ) -> str:
        from mngr.ops import capture

        return capture.capture(self.get(target), window=window, full=full, ansi=ansi)

    def printed(self, target: str | Agent) -> bytes:
        """What its program wrote to its terminal, as far as the log goes back."""
        from mngr.ops import printed

        return printed.past(self.get(target))

    def follow_printed(self, target: str | Agent) -> Iterator[bytes]:
        """As `printed`, then what comes, until the agent has ended."""
        from mngr.ops import printed

        return printed.follow(self.world, self.get(target))

    def events(self, target: str | Agent, *, follow: bool = False) -> Iterator[dict[str, Json]]:
        from mngr.ops import logs

        agent = self.get(target)
        return logs.follow(agent) if follow else iter(logs.past(agent))

    def transcript(self, target: str | Agent) -> Sequence[Turn]:
        """The conversation, oldest first; empty where its program keeps none."""
        from mngr.ops import conversation

        return conversation.transcript(self.world, self._agent(target))

    def conversation(
        self, target: str | Agent, *, follow: bool = False
    ) -> Iterable[dict[str, Json]]:
        """As records with ids; with `follow` until the agent has ended."""
        from mngr.ops import transcripts

        look = transcripts.follow if follow else transcripts.past
        return look(self.world, self._agent(target))

    def usage(self, agents: Iterable[Agent]) -> dict[str, Usage]:
        """By id, of the agents that tell what they use."""
        from mngr.ops import usage

        return usage.of_reachable(self.world, tuple(agents))

    def limits(self, target: str | Agent) -> Limits:
        from mngr.ops.watcher import Limits

        return Limits.of(self._agent(target).record)

    def pending(self) -> Sequence[tuple[Agent, str]]:
        """Every agent that asks permission for something, and its question."""
        from mngr.ops import answering

        return [(each, answering.question(each) or "") for each in answering.pending(self.list())]

    def question(self, target: str | Agent) -> str:
        """What it asks permission for; Refused where it asks nothing."""
        from mngr.ops import answering

        return answering.require_question(self.get(target))

    # hosts

    def host(self, name: str) -> Host:
        from mngr.ops import hosting

        return hosting.find(self.world, name)

    def makes_hosts(self, provider: str) -> bool:
        from mngr.ops import hosting

        return hosting.capabilities(self.world, provider).new_hosts

    def host_cost(self, host: Host) -> float | None:
        """Dollars so far; None if it is free or has no price."""
        from mngr.ops import hosting

        return hosting.cost(self.world, host)

    def host_rate(self, provider: str, build: Mapping[str, str]) -> float | None:
        """Dollars per second of a host that a provider makes; None if no price is known."""
        from mngr.ops import hosting

        return hosting.engine(self.world, provider).rate(build)

    def made_hosts(self, provider: str) -> Mapping[str, float]:
        """The hosts that this home made with a provider, and when."""
        from mngr.hosts import ledger

        notes = ledger.known(self.world.home, provider)
        return {note.name: note.time for note in notes if note.handle}

    def discard_host(self, provider: str, name: str) -> None:
        """End a host whose creation was cut short, and forget it."""
        from mngr.ops import hosting

        hosting.engine(self.world, provider).destroy(name)

    def create_host(self, provider: str, request: HostRequest) -> Host:
        from mngr.ops import hosting

        return hosting.create(self.world, provider, request)

    def stop_host(self, name: str) -> None:
        from mngr.ops import hosting

        hosting.stop(self.world, hosting.find(self.world, name))

    def start_host(self, name: str) -> Sequence[Agent]:
        """The agents that were started with it."""
        from mngr.ops import hosting

        return hosting.start(self.world, hosting.find(self.world, name))

    def snapshot_host(self, name: str, label: str = "") -> str:
        """The image that its file system was kept as."""
        from mngr.ops import hosting

        return hosting.snapshot(self.world, hosting.find(self.world, name), label)

    def destroy_host(self, name: str, *, force: bool = False, keep: bool = True) -> str:
        """The image that it was kept as, if it had agents and its provider can."""
        from mngr.ops import hosting

        host = hosting.find(self.world, name)
        return hosting.destroy(self.world, host, force=force, keep=keep)

    def agents_of_host(self, name: str) -> Sequence[Agent]:
        from mngr.ops import hosting

        return hosting.agents_of(self.world, hosting.find(self.world, name))

    def providers(self) -> Sequence[Standing]:
        from mngr.ops import hosting

        return hosting.providers(self.world)

    def leases(self) -> Mapping[str, Sequence[Lease]]:
        """By provider, what it has of ours."""
        from mngr.ops import audit

        return audit.leases(self.world)

    def audit_hosts(self, provider: str = "") -> Sequence[Finding]:
        from mngr.ops import audit

        return audit.audit(self.world, provider)

    def settle_host(self, finding: Finding) -> None:
        """End over there what should not be, and forget here what is not."""
        from mngr.ops import audit

        audit.settle(self.world, finding)

    def observe(self, *, discovery_only: bool = False) -> Iterator[dict[str, Json]]:
        from mngr.ops import watch

        return watch.observe(self.world, discovery_only=discovery_only)

    def wait(
        self,
        targets: Iterable[str | Agent],
        states: Sequence[State] = (),
        *,
        any_one: bool = False,
        timeout: float | None = None,
    ) -> Sequence[Agent]:
        """Until all (or any) are in one of `states`, by default ended or waiting for somebody.

        An agent that has ended in another state is returned too.
        """
        from mngr.ops import watch

        agents = [self._agent(target) for target in targets]
        chosen = states or watch.DEFAULT_STATES
        return watch.wait(self.world, agents, chosen, any_one=any_one, timeout=timeout)

    # act

    def create(self, request: CreateRequest) -> Created:
        """Returns when the agent provably runs or has provably ended."""
        from mngr.ops import create

        return create.create(self.world, request)

    def derive(self, type: str = "", provider: str = "") -> Derived:
        """What a type's name stands for here; without a name, what `create` would choose."""
        from mngr.ops import types

        world = self.world
        if type:
            return types.derive(world.config, world.registry, type)
        # A host that has yet to be made cannot be asked what is installed there.
        there = "" if provider and self.makes_hosts(provider) else provider
        return types.default(world, world.host(provider=there))[0]

    def preflight(self, type: str, env: Mapping[str, str]) -> None:
        """Raise if agents of this type could not work on this machine."""
        from mngr.ops import types

        types.preflight(self.world, self.world.host(), type, env)

    def create_many(
        self, requests: Sequence[CreateRequest], *, max_parallel: int = 8
    ) -> Iterator[tuple[int, Created | Exception]]:
        """Each as it completes, with its index; one failure does not stop the others."""
        from mngr.ops import batch

        return batch.create_many(self.world, requests, max_parallel)

    def settled(self, request: CreateRequest) -> tuple[CreateRequest, Sequence[str]]:
        """With a type, where none was asked for, and a remark on that choice."""
        from mngr.ops import create, types

        host, _ = create.place(self.world, request, make=False)
        return types.settled(self.world, host, request)

    def preview(self, request: CreateRequest) -> tuple[str, Host, Plan | None]:
        """What `create` would do: the name, the host, and the work directory it would make."""
        from mngr.ops import create

        return create.preview(self.world, request)

    def stream(self, target: str | Agent) -> Iterator[tuple[Literal["stdout", "stderr"], bytes]]:
        """What a headless agent prints, until it has ended."""
        from mngr.ops import foreground

        return foreground.stream(self.world, self.get(target))

    def message(self, target: str | Agent, text: str, *, timeout: float = 0.0) -> Receipt:
        """A program that is busy has until `timeout` to read it; else it is queued."""
        from mngr.ops import message

        return message.send(self.world, self.get(target), text, timeout=timeout)

    def ask(self, target: str | Agent, text: str, *, timeout: float = 0.0) -> Reply:
        """As `message`, then wait for the answer."""
        from mngr.ops import replies

        return replies.ask(self.world, self.get(target), text, timeout=timeout)

    def answer(self, target: str | Agent, allow: bool, *, timeout: float = 30.0) -> Agent:
        """Answer the permission it asks for; the agent as it is once it has gone on."""
        from mngr.ops import answering

        return answering.answer(self.world, self.get(target), allow, timeout=timeout)

    def limit(
        self, target: str | Agent, changes: Mapping[str, float | None]
    ) -> tuple[Limits, Limits]:
        """Change timeout, max_cost or max_tokens; None lifts one. The limits before and after."""
        from mngr.ops import limits

        return limits.set_limits(self.world, self.get(target), changes)

    def exec(
        self,
        target: str | Agent,
        command: str | Sequence[str],
        *,
        cwd: str = "",
        timeout: float = 3600.0,
        input: bytes | None = None,
    ) -> ExecResult:
        """A string goes through sh; a sequence is an argv."""
        from mngr.ops import execute

        argv = ["sh", "-c", command] if isinstance(command, str) else command
        return execute.execute(self.get(target), argv, cwd=cwd, timeout=timeout, input=input)

    def start(self, target: str | Agent, *, fresh: bool = False) -> Agent:
        """`fresh` says that the agent has just been read."""
        from mngr.ops import lifecycle

        return lifecycle.start(self.world, self._agent(target), fresh=fresh)

    def stop(self, target: str | Agent) -> Agent:
        from mngr.ops import lifecycle

        return lifecycle.stop(self.world, self._agent(target))

    def stop_many(self, agents: Sequence[Agent], *, force: bool = False) -> dict[str, str]:
        """One visit per host however many they are; look at them again to see how it went.

        With `force` programs get a second, not `stop.grace`. Returned is, by agent id, why a stop
        could not be recorded.
        """
        from mngr.ops import lifecycle

        return lifecycle.stop_many(self.world, agents, force=force)

    def check_stopped(self, agent: Agent, unrecorded: Mapping[str, str]) -> None:
        """Raise unless it has ended and its record says so."""
        from mngr.ops import lifecycle

        lifecycle.check_stopped(agent, unrecorded)

    def restart(self, target: str | Agent) -> Agent:
        from mngr.ops import lifecycle

        return lifecycle.restart(self.world, self._agent(target))

    def archive(self, target: str | Agent) -> Agent:
        from mngr.ops import lifecycle

        return lifecycle.archive(self.world, self.get(target))

    def rename(self, target: str | Agent, new_name: str) -> Agent:
        from mngr.ops import lifecycle

        return lifecycle.rename(self.world, self.get(target), new_name)

    def label(
        self, target: str | Agent, set: Mapping[str, str], remove: Sequence[str] = ()
    ) -> Agent:
        from mngr.ops import lifecycle

        return lifecycle.label(self.world, self.get(target), set, remove)


def local_repository(path: str) -> Repo:
    """git, for a directory of this machine."""
    from mngr.ops import transport

    return transport.here(path)


def default_config() -> Config:
    """What the command line would use here and now."""
    home = os.environ.get("MNGR_HOST_DIR") or os.path.expanduser("~/.mngr")
    return Config.load(os.path.abspath(home), os.getcwd(), os.environ, [])
