"""Limits on time, tokens and cost, and how to change them while an agent runs.

They are kept in the record. A watcher on the agent's host (`watcher.py`) enforces them; if it has
died, any process that reads agents repeatedly does so instead.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from mngr.agents.base import Tokens
from mngr.errors import MngrError, UsageError
from mngr.hosts import tmux
from mngr.model.durations import exactly
from mngr.model.state import EndKind, State
from mngr.ops.change import change
from mngr.ops.lifecycle.running import note_event
from mngr.ops.limits import usage, watcher
from mngr.ops.limits.prices import Prices
from mngr.ops.limits.watcher import Limits
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.world import World

LOOK = 2.0
"""Seconds between two checks; an agent must exceed a limit in both to be ended."""
LAUNCHING = 60.0


def require_meter(world: World, type: str, limits: Limits) -> None:
    """Raise UsageError if agents of this type do not report their usage."""
    if limits.metered and not world.agent_type(type).meter():
        raise UsageError(
            f"agents of type {type!r} do not report their usage, so --max-cost and --max-tokens "
            "cannot be enforced",
            "use --timeout",
        )


def set_limits(
    world: World, agent: Agent, changes: Mapping[str, float | None]
) -> tuple[Limits, Limits]:
    """Return the old and the new limits; a running agent's watcher applies them within a second."""
    old = Limits.of(agent.record)
    require_meter(world, agent.record.type, old.updated(changes))
    record = change(agent.host, agent.id, lambda now: now.updated(changes))
    new = Limits.of(record)
    note_event(agent.host, record, "limits_changed", old=str(old), new=str(new))
    now = _launched(world, agent)
    if now.state in (State.RUNNING, State.WAITING):
        _watch(world, now)
    return old, new


def _launched(world: World, agent: Agent) -> Agent:
    """Wait for a launch in progress: its files were written without the new limits."""
    deadline = time.monotonic() + LAUNCHING
    while True:
        now = refreshed(world, agent)
        if now.state is not State.CREATING or time.monotonic() > deadline:
            return now
        time.sleep(0.05)


def _watch(world: World, agent: Agent) -> None:
    """Start a new watcher; an older one notices that it has been replaced, and exits."""
    # The pid of the pane is that of the launcher; the agent can write another one into `started`.
    host, pane = agent.host, agent.evidence.pane
    host.put(watcher.files(world, host, agent.record))
    if pane is not None and not pane.dead and Limits.of(agent.record):
        script = watcher.path(host.home, agent.id)
        argv = tmux.background(host.socket, ["sh", script, str(pane.pid)])
        done = host.run(argv, timeout=20)
        done.raise_if_failed(f"the limits of {agent.name} cannot be watched")


class Keeper:
    """Enforces limits in processes that read agents repeatedly, if a watcher does not."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._next = time.monotonic() + LOOK
        self._over: dict[str, str] = {}

    def look(self, agents: Iterable[Agent]) -> None:
        """Check the agents; cheap if none has limits, or if the last check was recent."""
        if time.monotonic() < self._next:
            return
        alive = (State.RUNNING, State.WAITING)
        limited = [
            agent
            for agent in agents
            if agent.state in alive and agent.evidence.record and Limits.of(agent.record)
        ]
        over = self._exceeded(limited) if limited else {}
        for agent in limited:
            if agent.id in over and agent.id in self._over:
                self._end(agent, over[agent.id])
        self._over = over
        self._next = time.monotonic() + LOOK

    def _end(self, agent: Agent, cause: str) -> None:
        """End an agent as the watcher would: its launcher reports the cause, its work is kept."""
        host, pane = agent.host, agent.evidence.pane
        if pane is None or pane.dead:  # its pid may be that of another process now
            return
        script = watcher.path(host.home, agent.id)
        try:
            host.put(watcher.files(self._world, host, agent.record))
            host.run(["sh", script, str(pane.pid), cause], timeout=120)
        except MngrError as error:
            self._world.note(agent.name, error)

    def _exceeded(self, agents: list[Agent]) -> dict[str, str]:
        metered = [agent for agent in agents if Limits.of(agent.record).metered]
        used = usage.tokens(self._world, metered)
        prices = Prices(self._world.config)
        found = {agent.id: _cause(agent, used.get(agent.id, {}), prices) for agent in agents}
        return {id: cause for id, cause in found.items() if cause}


def _cause(agent: Agent, used: Mapping[str, Tokens], prices: Prices) -> str:
    """Return why the agent must end, in the watcher's words, or ""."""
    limits, started = Limits.of(agent.record), agent.evidence.this_started
    if limits.timeout and started and agent.now - started.time > limits.timeout + 1:
        return f"{EndKind.TIMED_OUT} after {exactly(limits.timeout)}"
    tokens = sum(each.total for each in used.values())
    if limits.max_tokens is not None and tokens > limits.max_tokens:
        return f"{EndKind.OVER_LIMIT} of {limits.max_tokens} tokens ({tokens} used)"
    cost = prices.guarded(used)
    if limits.max_cost is not None and cost > limits.max_cost:
        return f"{EndKind.OVER_LIMIT} of ${limits.max_cost:g} (${cost:.4g} used)"
    return ""
