"""Wait for states, and observe them change."""

from __future__ import annotations

import time

from mngr import events
from mngr.errors import TimedOut
from mngr.ops.limits import Keeper
from mngr.ops.listing import agents, describe
from mngr.state import ENDED, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mngr.ops.listing import Agent
    from mngr.ops.world import World
    from mngr.struct import Json

TICK = 0.05
"""Looking costs one tmux call and a few file reads, about 5 ms."""

DEFAULT_STATES = (*ENDED, State.WAITING)


def wait(
    world: World,
    targets: Sequence[Agent],
    states: Sequence[State] = DEFAULT_STATES,
    *,
    any_one: bool = False,
    timeout: float | None = None,
) -> list[Agent]:
    """The agents that reached one of `states`; a vanished one counts as gone, not as waited for.

    One on a host that does not answer has not vanished: the wait goes on.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    wanted = [agent.id for agent in targets]
    keeper = Keeper(world)
    while True:
        now = {agent.id: agent for agent in agents(world, wanted)}
        now |= {a.id: a for a in targets if a.id not in now and a.host.ref.id in world.silent}
        keeper.look(now.values())
        reached = [now[each] for each in wanted if each in now and now[each].state in states]
        if any_one and reached:
            return reached
        if len(reached) == len(now):
            return reached
        if deadline is not None and time.monotonic() >= deadline:
            late = ", ".join(f"{a.name} is {a.state}" for a in now.values() if a not in reached)
            raise TimedOut(f"still waiting after {timeout:g} s: {late}")
        time.sleep(TICK)


def observe(
    world: World, *, interval: float = 0.25, discovery_only: bool = False
) -> Iterator[dict[str, Json]]:
    """Endless: one event per agent found, changed or gone."""
    known: dict[str, Agent] = {}
    keeper = Keeper(world)
    while True:
        current = {agent.id: agent for agent in agents(world)}
        keeper.look(current.values())
        yield from changes(known, current, discovery_only)
        known = current
        time.sleep(interval)


def changes(
    before: dict[str, Agent], after: dict[str, Agent], discovery_only: bool = False
) -> Iterator[dict[str, Json]]:
    for id, agent in after.items():
        old = before.get(id)
        if old is None:
            yield events.event("agent_discovered", "observe", agent=describe(agent))
        elif not discovery_only and (old.state, old.verdict.reason, old.name) != (
            agent.state,
            agent.verdict.reason,
            agent.name,
        ):
            yield events.event(
                "agent_state_changed",
                "observe",
                old_state=str(old.state),
                new_state=str(agent.state),
                agent=describe(agent),
            )
    for id, agent in before.items():
        if id not in after:
            yield events.event("agent_gone", "observe", agent_id=id, agent_name=agent.name)
