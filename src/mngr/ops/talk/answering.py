"""Find open permission questions, and answer them with proof that the answer was accepted."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mngr.errors import MngrError, Refused, TimedOut
from mngr.hosts import tmux
from mngr.locks import Lock
from mngr.model.state import State
from mngr.ops.lifecycle.running import note_event
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.work import transport
from mngr.ops.world import World

PERMISSION = "permission"
TICK = 0.05
AGAIN = 8.0
"""Seconds after which the key is sent again: a program may report a question before it reads."""


def question(agent: Agent) -> str | None:
    """Return the open permission question; None if there is none."""
    word, _, asked = agent.verdict.reason.partition(": ")
    return asked if agent.state is State.WAITING and word == PERMISSION else None


def pending(agents: Sequence[Agent]) -> list[Agent]:
    return [agent for agent in agents if question(agent) is not None]


def require_question(agent: Agent) -> str:
    asked = question(agent)
    if asked is None:
        raise Refused(f"{agent.name} has no permission request: it is {agent.verdict}")
    return asked


def answer(world: World, agent: Agent, allow: bool, *, timeout: float = 30.0) -> Agent:
    """Type the answer; return when there is evidence that the agent accepted it."""
    with Lock(world.home, "message", agent.id):
        asking = refreshed(world, agent)
        require_question(asking)
        keys = _keys(world, asking, allow)
        _type(asking, keys)
        answered = _gone_on(world, asking, keys, timeout)
    word = "allow" if allow else "deny"
    note_event(agent.host, agent.record, "permission_answered", answer=word)
    return answered


def _keys(world: World, agent: Agent, allow: bool) -> tuple[str, ...]:
    keys = world.known_type(agent.record.type).answer(agent.evidence, allow)
    if not keys:
        raise Refused(
            f"mngr cannot answer this request of type {agent.record.type!r}",
            f"answer it in its terminal: `mngr connect {agent.name}`",
        )
    return keys


def _type(agent: Agent, keys: tuple[str, ...]) -> None:
    pane = agent.evidence.pane
    assert pane is not None, "it is alive"
    done = agent.host.run(tmux.press(agent.host.socket, pane.pane_id, keys), timeout=30)
    if done.code or done.stdout.strip() != b"pressed":
        raise MngrError(f"{agent.name} ended before it was answered")


def _gone_on(world: World, asking: Agent, keys: tuple[str, ...], timeout: float) -> Agent:
    """Wait for another state or another question, and return the agent."""
    now = time.monotonic()
    deadline, again = now + timeout, now + AGAIN
    asked = (asking.verdict.reason, asking.verdict.since)
    while True:
        agent = refreshed(world, asking)
        if question(agent) is None or (agent.verdict.reason, agent.verdict.since) != asked:
            return agent
        now = time.monotonic()
        if now > deadline:
            raise TimedOut(
                f"{agent.name} was answered, but is still waiting: {agent.verdict.reason}",
                f"see `mngr capture {agent.name}`",
            )
        if now > again:
            _type(agent, keys)
            again = now + AGAIN
        time.sleep(transport.pause(agent.host, TICK))
