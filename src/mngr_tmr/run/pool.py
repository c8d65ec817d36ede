"""The hosts of a run, created as its agents need them and ended with the run.

If the provider does not create hosts but has several, as ssh, agents are spread over them.
"""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from mngr.api import HostRequest, Mngr
from mngr.errors import MngrError, Taken
from mngr.model.struct import Json
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.journal.model import Run

DAY = 86_400.0
"""Seconds after which a host of a run without a time limit ends itself."""
SPARE = 3600.0
"""Seconds that a host may outlive the time limit of its run, for collecting work."""


@dataclass
class Seats:
    """A host and the agents on it."""

    name: str
    made: float = 0.0
    """When it was created; 0 before."""
    lost: bool = False
    agents: set[str] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    """All agents that were ever on it."""
    lock: threading.Lock = field(default_factory=threading.Lock)


def hosts_of(api: Mngr, run: Run) -> dict[str, float]:
    """Return the hosts that a run created and that were not ended, and when it created them."""
    made = api.made_hosts(run.options.provider) if run.options.provider else {}
    # Not all that begin so: of the runs `fix` and `fix-2`, both have a host tmr-fix-2-….
    pattern = re.compile(rf"tmr-{re.escape(run.name)}-\d+")
    return {name: begun for name, begun in made.items() if pattern.fullmatch(name)}


class Pool:
    """`address` may be called from many threads."""

    def __init__(self, api: Mngr, run: Run) -> None:
        self._api, self._run = api, run
        self._provider = run.options.provider
        self.active = bool(self._provider) and api.makes_hosts(self._provider)
        """Whether the provider creates hosts."""
        hosts = api.hosts() if self._provider and not self.active else ()
        there = (each.ref.name for each in hosts if each.ref.provider == self._provider)
        self.existing = tuple(there)
        """The hosts of a provider that does not create any."""
        self._lock = threading.Lock()
        self._hosts: dict[str, Seats] | None = None

    def address(self, agent: str) -> str:
        """Return where to create this agent; create a host if none has room."""
        if not self.active and len(self.existing) < 2:
            return agent
        with self._lock:
            seats = self._seats(agent)
            seats.agents.add(agent)
            seats.served.add(agent)
        try:
            if self.active:
                self._ensure(seats)
        except (MngrError, OSError):
            seats.lost = True
            self.leave(agent)
            raise
        return f"{agent}@{seats.name}.{self._provider}"

    def leave(self, agent: str) -> None:
        """Free the place of an agent that has ended."""
        with self._lock:
            for seats in (self._hosts or {}).values():
                seats.agents.discard(agent)

    def lose(self, agent: str) -> None:
        """Put no more agents on the host of this one, which does not answer or does not run."""
        with self._lock:
            for seats in (self._hosts or {}).values():
                seats.lost = seats.lost or agent in seats.agents

    @property
    def rate(self) -> float | None:
        """Return dollars per second of each host; None without a price or without own hosts."""
        build = dict(self._run.options.build)
        return self._api.host_rate(self._provider, build) if self.active else None

    def close(self, note: Note) -> None:
        """End every host and journal its cost; alert if one cannot be ended."""
        if not self.active:
            return
        with self._lock:
            hosts = [each for each in self._known().values() if each.made]
            self._hosts = {}
        now, rate = time.time(), self.rate
        for each in hosts:
            fields: dict[str, Json] = {
                "host": each.name,
                "agents": len(each.served),
                "seconds": round(now - each.made, 1),
                "cost": None if rate is None else round(rate * (now - each.made), 6),
            }
            note("host_ended", fields)
        with ThreadPoolExecutor(max_workers=8) as pool:
            for problem in filter(None, pool.map(self._end, hosts)):
                note("alert", {"text": f"{problem}; see `mngr host audit`"})

    def _end(self, seats: Seats) -> str:
        try:
            self._api.destroy_host(f"{seats.name}.{self._provider}", force=True, keep=False)
        except MngrError as error:
            return f"the host {seats.name} could not be destroyed: {error.message}"
        return ""

    def _seats(self, agent: str) -> Seats:
        """Return the host that has the agent already, else one with room, else a new one."""
        known = self._known()
        places = [each for each in known.values() if agent in each.agents]
        room = [each for each in known.values() if not each.lost and self._has_room(each)]
        if not self.active:
            room = sorted(room or known.values(), key=lambda each: len(each.agents))
        if not places and not room:
            number = next(n for n in range(1, 10_000) if self._name(n) not in known)
            room = [known.setdefault(self._name(number), Seats(self._name(number)))]
        return (places or room)[0]

    def _has_room(self, seats: Seats) -> bool:
        return not self.active or len(seats.agents) < max(1, self._run.options.agents_per_host)

    def _name(self, number: int) -> str:
        return f"tmr-{self._run.name}-{number}"

    def _known(self) -> dict[str, Seats]:
        if self._hosts is None:
            mine = hosts_of(self._api, self._run)
            mine |= dict.fromkeys(self.existing, 0.0)
            self._hosts = {name: Seats(name, made=made) for name, made in mine.items()}
            for agent in self._api.list() if mine else ():
                seats = self._hosts.get(agent.host.ref.name)
                ours = agent.name.startswith(f"tmr-{self._run.name}-")
                if seats is not None and ours and agent.host.ref.provider == self._provider:
                    seats.agents.add(agent.name)
                    seats.served.add(agent.name)
        return self._hosts

    def _ensure(self, seats: Seats) -> None:
        with seats.lock:
            if seats.lost:
                raise MngrError(f"the host {seats.name} could not be created")
            if seats.made:
                return
            options = self._run.options
            request = HostRequest(
                name=seats.name,
                build=dict(options.build),
                start=options.start_args,
                lifetime=options.max_time + SPARE if options.max_time else DAY,
            )
            try:
                self._api.create_host(self._provider, request)
            except Taken:  # created by a process that was killed
                self._api.discard_host(self._provider, seats.name)
                self._api.create_host(self._provider, request)
            seats.made = time.time()
