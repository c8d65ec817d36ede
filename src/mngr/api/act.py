"""The methods of the public API that change agents: create, message, exec, start, stop, label."""

from __future__ import annotations

from mngr.api.hosts import Hosts
from mngr.api.modules import (
    answering,
    batch,
    create,
    execute,
    limits,
    message,
    output,
    running,
    types,
)
from mngr.hosts import spawn
from mngr.ops.look.listing import Agent, check_reachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Literal

    from mngr.agents.base import Receipt
    from mngr.errors import MngrError
    from mngr.hosts.base import Host
    from mngr.model.completed import Completed
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
        return create.create(self._world, request)

    def interrupt(self) -> None:
        """End what other threads do with this process's agents; they raise KeyboardInterrupt."""
        spawn.interrupt()

    def derive(self, type: str = "", provider: str = "") -> Derived:
        """Return the type with that name; without a name, an installed one, or else `mechanic`."""
        world = self._world
        if type:
            return types.derive(world.config, world.registry, type)
        # A host that is not created yet cannot be asked which programs it has.
        there = "" if provider and self.makes_hosts(provider) else provider
        return types.default(world, world.host(provider=there), last_resort=True)[0]

    def preflight(self, type: str, env: Mapping[str, str]) -> None:
        """Raise if agents of this type could not work on this machine."""
        types.preflight(self._world, self._world.host(), type, env)

    def create_many(
        self,
        requests: Sequence[CreateRequest],
        *,
        max_parallel: int = 8,
        stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[int, Created | MngrError]]:
        """Yield index and result of each as it completes; a failure does not stop the others.

        Once `stop` is true, no more requests are started.
        """
        return batch.create_many(self._world, requests, max_parallel, stop)

    def settled(self, request: CreateRequest) -> tuple[CreateRequest, Sequence[str]]:
        """Return the request with a type, and a remark if mngr chose the type."""
        from mngr.ops.lifecycle.request import place

        host, _ = place(self._world, request, make=False)
        return types.settled(self._world, host, request)

    def preview(self, request: CreateRequest) -> tuple[str, Host, Plan | None]:
        """Return what `create` would use: the name, the host, and the plan of a work directory."""
        return create.preview(self._world, request)

    def stream(self, target: str | Agent) -> Iterator[tuple[Literal["stdout", "stderr"], bytes]]:
        """Yield the output of a headless agent until it has ended."""
        return output.stream(self._world, self.get(target))

    def message(self, target: str | Agent, text: str, *, timeout: float = 0.0) -> Receipt:
        """Send a message; a busy program has `timeout` seconds to read it, then it is queued."""
        return message.send(self._world, self.get(target), text, timeout=timeout)

    def ask(self, target: str | Agent, text: str, *, timeout: float = 0.0) -> Reply:
        """Send a message and return the reply."""
        return message.ask(self._world, self.get(target), text, timeout=timeout)

    def answer(self, target: str | Agent, allow: bool, *, timeout: float = 30.0) -> Agent:
        """Answer a permission request; return the agent once it has accepted the answer."""
        return answering.answer(self._world, self.get(target), allow, timeout=timeout)

    def limit(
        self, target: str | Agent, changes: Mapping[str, float | None]
    ) -> tuple[Limits, Limits]:
        """Change timeout, max_cost or max_tokens (None: no limit); return old and new limits."""
        return limits.set_limits(self._world, self.get(target), changes)

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
        argv = ["sh", "-c", command] if isinstance(command, str) else command
        return execute.execute(self.get(target), argv, cwd=cwd, timeout=timeout, input=input)

    def stream_exec(
        self,
        agent: Agent,
        argv: Sequence[str],
        sink: Callable[[int, bytes], None],
        *,
        cwd: str = "",
        timeout: float = 3600.0,
        remembered: bool = False,
    ) -> int:
        """Run a command, pass its output to `sink(1 or 2, bytes)`, and return the exit code.

        An agent that was only `remembered` is checked in the same round trip; if it has changed,
        nothing runs and Stale is raised.
        """
        return execute.stream(agent, argv, sink, cwd=cwd, timeout=timeout, remembered=remembered)

    def exec_argv(
        self, agent: Agent, argv: Sequence[str], *, cwd: str = "", tty: bool = False
    ) -> list[str]:
        """Return the local command that runs `argv` in the agent's work directory."""
        return agent.host.argv(execute.exec_argv(agent.host, agent.record, argv, cwd), tty=tty)

    def run_beside(self, agent: Agent, argv: Sequence[str], *, timeout: float) -> Completed:
        """Run a command on the agent's host, outside its work directory and environment."""
        return agent.host.run(argv, timeout=timeout)

    def put(self, agent: Agent, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Write files on the agent's host, by path: content and mode. Each appears at once."""
        agent.host.put(files)

    def start(self, target: str | Agent, *, fresh: bool = False) -> Agent:
        """Start an agent again; `fresh` means that the given Agent has just been read."""
        return running.start(self._world, self._agent(target), fresh=fresh)

    def stop(self, target: str | Agent) -> Agent:
        return running.stop(self._world, self._agent(target))

    def stop_many(self, agents: Sequence[Agent], *, force: bool = False) -> dict[str, str]:
        """Stop agents, one round trip per host; return by id why a stop could not be recorded.

        Read the agents again to see the result. With `force`, programs have one second instead of
        `stop.grace`.
        """
        return running.stop_many(self._world, agents, force=force)

    def check_stopped(self, agent: Agent, unrecorded: Mapping[str, str]) -> None:
        """Raise unless the agent has ended and the stop was recorded."""
        check_reachable(agent)
        running.check_stopped(agent, unrecorded)

    def restart(self, target: str | Agent) -> Agent:
        return running.restart(self._world, self._agent(target))

    def archive(self, target: str | Agent) -> Agent:
        return running.archive(self._world, self.get(target))

    def rename(self, target: str | Agent, new_name: str) -> Agent:
        return running.rename(self._world, self.get(target), new_name)

    def label(
        self, target: str | Agent, set: Mapping[str, str], remove: Sequence[str] = ()
    ) -> Agent:
        return running.label(self._world, self.get(target), set, remove)
