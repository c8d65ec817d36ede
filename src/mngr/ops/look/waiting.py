"""Wait for states of agents, and observe changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from queue import Empty, SimpleQueue

from mngr.errors import MngrError, TimedOut
from mngr.hosts.base import Host, is_here
from mngr.model import events
from mngr.model.durations import exactly
from mngr.model.state import ENDED, State
from mngr.model.struct import Json
from mngr.ops.limits.limits import Keeper
from mngr.ops.look.listing import Agent, agents
from mngr.ops.world import World

TICK = 0.05
"""Seconds between two local readings; each costs one tmux call and some file reads, about 5 ms."""

DEFAULT_STATES = (*ENDED, State.WAITING)

SILENCE = 5.0
"""Seconds until a host that did not answer is asked again."""

DISCOVERY = 2.0
"""Seconds until the providers are asked again for their hosts; they read files for that."""

SETTLED, DESTROYED = 1.0, 10.0
"""Seconds after which an agent has ended for good: a restart or a destroy takes less time."""


def wait(
    world: World,
    targets: Sequence[Agent],
    states: Sequence[State] = DEFAULT_STATES,
    *,
    any_one: bool = False,
    timeout: float | None = None,
) -> list[Agent]:
    """Return the agents that reached one of `states`; an agent that disappeared is not returned.

    Agents that have ended in another state are returned too, since only a new start could change
    it. For an agent on a host that does not answer, the wait continues.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    wanted = [agent.place for agent in targets]
    keeper = Keeper(world)
    since: dict[tuple[str, str], float] = {}
    ids = [agent.id for agent in targets]
    with Looks([agent.host for agent in targets], ids, TICK) as looks:
        while True:
            # A copy of one agent may be on the host of another.
            now = {each.place: each for each in looks.look(world) if each.place in wanted}
            silent = [agent for agent in targets if agent.host.ref.id in world.silent]
            now |= {agent.place: agent for agent in silent if agent.place not in now}
            keeper.look(now.values())
            reached = [now[each] for each in wanted if each in now and now[each].state in states]
            if any_one and reached:
                return reached
            stuck = _stuck([now[each] for each in wanted if each in now], states, since)
            if len(reached) + len(stuck) == len(now):
                return [*reached, *stuck]
            if deadline is not None and time.monotonic() >= deadline:
                late = ", ".join(f"{a.name} is {a.state}" for a in now.values() if a not in reached)
                raise TimedOut(f"still waiting after {exactly(timeout or 0)}: {late}")
            looks.rest(deadline)


def _stuck(
    agents: Sequence[Agent], states: Sequence[State], since: dict[tuple[str, str], float]
) -> list[Agent]:
    """Return agents that ended in other states, long enough ago that no command acts on them."""
    found, clock = [], time.monotonic()
    for agent in agents:
        if agent.state not in ENDED or agent.state in states:
            since.pop(agent.place, None)
            continue
        record = agent.evidence.record
        patience = DESTROYED if record and record.removal else SETTLED
        if clock - since.setdefault(agent.place, clock) >= patience:
            found.append(agent)
    return found


# Print a checksum of the agents' files and panes as soon as it differs from $3, or after two
# seconds, because some states change with time alone. A file that is replaced has another inode.
CHANGED = r"""
home=$1 socket=$2 mark=$3 tries=0; shift 3
cd "$home/agents" 2>/dev/null || { sleep 1; exit 0; }
look() {
  [ $# -gt 0 ] || set -- agent-*
  ls -liLn "$@"
  for each; do ls -lin "$each/signals"; done
  [ ! -S "$socket" ] || tmux -S "$socket" list-panes -a -F '#{pane_id} #{pane_dead}'
}
while now=$(look "$@" 2>/dev/null | cksum) && [ "$now" = "$mark" ] && [ "$tries" -lt 8 ]; do
  sleep 0.25
  tries=$((tries + 1))
done
echo "$now"
"""


class Looks:
    """Reads some hosts repeatedly: this machine after each `tick`, others when they report news."""

    def __init__(self, hosts: Sequence[Host], ids: Sequence[str] | None, tick: float) -> None:
        self._ids, self._tick = ids, tick
        self._hosts: dict[str, Host] = {}
        self._due: dict[str, Host] = {}
        self._seen: dict[str, list[Agent]] = {}
        self._watched: set[str] = set()
        self._news: SimpleQueue[str] = SimpleQueue()
        self.cover(hosts)

    def __enter__(self) -> Looks:
        return self

    def __exit__(self, *_: object) -> None:
        self.cover([])  # this ends the threads

    def cover(self, hosts: Sequence[Host]) -> None:
        """Read these hosts from now on, and no others; without hosts, the threads end."""
        covered = {host.ref.id: host for host in hosts}
        self._due = {id: host for id, host in self._due.items() if id in covered}
        self._due |= {id: host for id, host in covered.items() if id not in self._hosts}
        self._seen = {id: agents for id, agents in self._seen.items() if id in covered}
        self._hosts = covered

    def look(self, world: World) -> list[Agent]:
        """Return all agents, after reading the hosts that may have a change."""
        found = agents(world, self._ids, list(self._due.values())) if self._due else []
        for id in self._due:
            self._seen[id] = [each for each in found if each.host.ref.id == id]
        return [agent for each in self._seen.values() for agent in each]

    def rest(self, deadline: float | None = None) -> None:
        """Wait until there may be a change."""
        here = {id: host for id, host in self._hosts.items() if is_here(host)}
        for id in self._hosts.keys() - here.keys() - self._watched:
            self._watched.add(id)
            # A daemon thread ends with the command, and its remote call ends soon after.
            threading.Thread(target=self._watch, args=(self._hosts[id],), daemon=True).start()
        patience = self._tick if here else SILENCE
        if deadline is not None:
            patience = min(patience, max(0.0, deadline - time.monotonic()))
        reported = self._reports(patience)
        self._due = here | {id: self._hosts[id] for id in reported if id in self._hosts}

    def _reports(self, patience: float) -> list[str]:
        """Return the hosts that reported since the last call; wait for the first one."""
        found: list[str] = []
        try:
            found.append(self._news.get(timeout=patience))
            while True:
                found.append(self._news.get_nowait())
        except Empty:
            return found

    def _watch(self, host: Host) -> None:
        mark = ""
        while self._hosts.get(host.ref.id) is host:
            try:
                words = (host.home, host.socket, mark, *(self._ids or ()))
                done = host.run(["sh", "-c", CHANGED, "mngr", *words], timeout=30)
                mark = done.stdout.decode("utf-8", "replace").strip()
            except MngrError:
                time.sleep(SILENCE)
            self._news.put(host.ref.id)
        self._watched.discard(host.ref.id)


def observe(
    world: World, *, interval: float = 0.25, discovery_only: bool = False
) -> Iterator[dict[str, Json]]:
    """Yield the number of agents, then endlessly one event per agent found, changed or gone."""
    known: dict[tuple[str, str], Agent] | None = None
    keeper = Keeper(world)
    asked = time.monotonic()
    with Looks(world.hosts(), None, interval) as looks:
        while True:
            if time.monotonic() - asked > DISCOVERY:
                looks.cover(world.hosts_now())
                asked = time.monotonic()
            current = {agent.place: agent for agent in looks.look(world)}
            keeper.look(current.values())
            if known is None:
                yield events.event("observing", "observe", agents=len(current))
            yield from changes(known or {}, current, discovery_only)
            known = current
            looks.rest()


def changes(
    before: dict[tuple[str, str], Agent],
    after: dict[tuple[str, str], Agent],
    discovery_only: bool = False,
) -> Iterator[dict[str, Json]]:
    for place, agent in after.items():
        old = before.get(place)
        if old is None:
            yield events.event("agent_discovered", "observe", agent=agent.to_json())
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
                agent=agent.to_json(),
            )
    for place, agent in before.items():
        if place not in after:
            yield events.event("agent_gone", "observe", agent_id=agent.id, agent_name=agent.name)
