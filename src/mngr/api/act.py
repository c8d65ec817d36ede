"""The methods of the public API that change agents: create, message, exec, start, stop, label."""

from __future__ import annotations

from mngr.api.hosts import Hosts
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal

    from mngr.agents.base import Receipt
    from mngr.hosts.base import Host
    from mngr.ops.lifecycle.create import Created
    from mngr.ops.lifecycle.request import CreateRequest
    from mngr.ops.limits.watcher import Limits
    from mngr.ops.talk.message import Reply
    from mngr.ops.types import Derived
    from mngr.ops.work.execute import ExecResult
    from mngr.ops.work.workdir import Plan


class Act(Hosts):
    """Operations on agents."""

    def create(self, request: CreateRequest) -> Created:
        """Create an agent; return when it provably runs or has provably ended."""
        from mngr.ops.lifecycle import create

        return create.create(self.world, request)

    def derive(self, type: str = "", provider: str = "") -> Derived:
        """Return the type with that name; without a name, the one that `create` would choose."""
        from mngr.ops import types

        world = self.world
        if type:
            return types.derive(world.config, world.registry, type)
        # A host that is not created yet cannot be asked which programs it has.
        there = "" if provider and self.makes_hosts(provider) else provider
        return types.default(world, world.host(provider=there))[0]

    def preflight(self, type: str, env: Mapping[str, str]) -> None:
        """Raise if agents of this type could not work on this machine."""
        from mngr.ops import types

        types.preflight(self.world, self.world.host(), type, env)

    def create_many(
        self, requests: Sequence[CreateRequest], *, max_parallel: int = 8
    ) -> Iterator[tuple[int, Created | Exception]]:
        """Yield index and result of each as it completes; a failure does not stop the others."""
        from mngr.ops.lifecycle import batch

        return batch.create_many(self.world, requests, max_parallel)

    def settled(self, request: CreateRequest) -> tuple[CreateRequest, Sequence[str]]:
        """Return the request with a type, and a remark if mngr chose the type."""
        from mngr.ops import types
        from mngr.ops.lifecycle.request import place

        host, _ = place(self.world, request, make=False)
        return types.settled(self.world, host, request)

    def preview(self, request: CreateRequest) -> tuple[str, Host, Plan | None]:
        """Return what `create` would use: the name, the host, and the plan of a work directory."""
        from mngr.ops.lifecycle import create

        return create.preview(self.world, request)

    def stream(self, target: str | Agent) -> Iterator[tuple[Literal["stdout", "stderr"], bytes]]:
        """Yield the output of a headless agent until it has ended."""
        from mngr.ops.look import output

        return output.stream(self.world, self.get(target))

    def message(self, target: str | Agent, text: str, *, timeout: float = 0.0) -> Receipt:
        """Send a message; a busy program has `timeout` seconds to read it, then it is queued."""
        from mngr.ops.talk import message

        return message.send(self.world, self.get(target), text, timeout=timeout)

    def ask(self, target: str | Agent, text: str, *, timeout: float = 0.0) -> Reply:
        """Send a message and return the reply."""
        from mngr.ops.talk import message

        return message.ask(self.world, self.get(target), text, timeout=timeout)

    def answer(self, target: str | Agent, allow: bool, *, timeout: float = 30.0) -> Agent:
        """Answer a permission request; return the agent once it has accepted the answer."""
        from mngr.ops.talk import answering

        return answering.answer(self.world, self.get(target), allow, timeout=timeout)

    def limit(
        self, target: str | Agent, changes: Mapping[str, float | None]
    ) -> tuple[Limits, Limits]:
        """Change timeout, max_cost or max_tokens (None: no limit); return old and new limits."""
        from mngr.ops.limits import limits

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
        """Run a command in the work directory: a string with sh, a sequence as argv."""
        from mngr.ops.work import execute

        argv = ["sh", "-c", command] if isinstance(command, str) else command
        return execute.execute(self.get(target), argv, cwd=cwd, timeout=timeout, input=input)

    def start(self, target: str | Agent, *, fresh: bool = False) -> Agent:
        """Start an agent again; `fresh` means that the given Agent has just been read."""
        from mngr.ops.lifecycle import running

        return running.start(self.world, self._agent(target), fresh=fresh)

    def stop(self, target: str | Agent) -> Agent:
        from mngr.ops.lifecycle import running

        return running.stop(self.world, self._agent(target))

    def stop_many(self, agents: Sequence[Agent], *, force: bool = False) -> dict[str, str]:
        """Stop agents, one round trip per host; return by id why a stop could not be recorded.

        Read the agents again to see the result. With `force`, programs have one second instead of
        `stop.grace`.
        """
        from mngr.ops.lifecycle import running

        return running.stop_many(self.world, agents, force=force)

    def check_stopped(self, agent: Agent, unrecorded: Mapping[str, str]) -> None:
        """Raise unless the agent has ended and the stop was recorded."""
        from mngr.ops.lifecycle import running

        running.check_stopped(agent, unrecorded)

    def restart(self, target: str | Agent) -> Agent:
        from mngr.ops.lifecycle import running

        return running.restart(self.world, self._agent(target))

    def archive(self, target: str | Agent) -> Agent:
        from mngr.ops.lifecycle import running

        return running.archive(self.world, self.get(target))

    def rename(self, target: str | Agent, new_name: str) -> Agent:
        from mngr.ops.lifecycle import running

        return running.rename(self.world, self.get(target), new_name)

    def label(
        self, target: str | Agent, set: Mapping[str, str], remove: Sequence[str] = ()
    ) -> Agent:
        from mngr.ops.lifecycle import running

        return running.label(self.world, self.get(target), set, remove)
