"""What other hosts last said, in `cache/hosts/<id>.json`: agents of a silent host are not gone."""

from __future__ import annotations

import json
import os
import time

from mngr.errors import BadRecord, Unreachable
from mngr.hosts.base import Capabilities, HostRef
from mngr.model.events import iso
from mngr.model.records import AgentRecord
from mngr.model.state import Evidence, State, Verdict
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from mngr.hosts.base import Host, HostReading
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

FRESH = 5.0
"""Seconds for which the same answer is not written again: `wait` asks many times a second."""


class Known(Struct):
    """One agent as it was last seen."""

    id: str
    rev: int
    record: Json
    state: str


class Memory(Struct):
    """One host as it last answered."""

    host: Json
    time: float
    agents: tuple[Known, ...] = ()


class AbsentHost:
    """Stands for a host whose provider cannot be asked: every attempt to use it fails."""

    capabilities = Capabilities()
    environment: dict[str, str] = {}
    home = socket = "/nonexistent"
    patience = 0.0

    def __init__(self, ref: HostRef, error: str) -> None:
        self.ref = ref
        self._error = error

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise Unreachable(f"host {self.ref.name} cannot be reached: {self._error}")

    run = put = swap = _fail

    def read(self, ids: Sequence[str] | None = None) -> HostReading:
        """No second footnote for each host: that its provider failed is one already."""
        from mngr.hosts.base import HostReading

        error = f"host {self.ref.name} cannot be reached: {self._error}"
        return HostReading(host=self.ref, now=0.0, agents=(), error=error)

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        return ["sh", "-c", 'echo "$0" >&2; exit 5', f"host {self.ref.name}: {self._error}"]


def hosts(home: str, provider: str, error: str) -> list[Host]:
    """Those a provider had when it last answered."""
    refs = [HostRef.from_json(memory.host) for memory in _memories(home)]
    return [AbsentHost(ref, error) for ref in refs if ref.provider == provider]


def forget(home: str, host_id: str) -> None:
    try:
        os.unlink(os.path.join(home, "cache", "hosts", f"{host_id}.json"))
    except FileNotFoundError:
        pass


def _memories(home: str) -> list[Memory]:
    folder = os.path.join(home, "cache", "hosts")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = (_load(os.path.join(folder, name)) for name in names if name.endswith(".json"))
    return [memory for memory in found if memory]


def names(home: str) -> list[str]:
    """Of agents on other hosts, as they last said: for completion."""
    return [
        str(known.record["name"])
        for memory in _memories(home)
        for known in memory.agents
        if isinstance(known.record, dict) and known.record.get("name")
    ]


def completed(
    world: World,
    host: Host,
    reading: HostReading,
    found: list[Agent],
    ids: Sequence[str] | None,
) -> list[Agent]:
    """The agents found, which are remembered; of a host that did not answer those remembered."""
    path = os.path.join(world.home, "cache", "hosts", f"{host.ref.id}.json")
    memory = _load(path)
    if reading.error and not found:
        known = memory.agents if memory else ()
        since = memory.time if memory else 0.0
        wanted = [each for each in known if ids is None or each.id in ids]
        return [_recalled(host, each, reading, since) for each in wanted]
    if not reading.error:
        _remember(path, host, memory, found, ids)
    return found


def _recalled(host: Host, known: Known, reading: HostReading, since: float) -> Agent:
    from mngr.ops.look.listing import Agent

    try:
        record, problem = AgentRecord.from_json(known.record), ""
    except BadRecord as bad:
        record, problem = None, bad.message
    reason = f"{reading.error} (last known {known.state} at {iso(since)[:19]}Z)"
    state = State.STOPPED if reading.stopped else State.UNREACHABLE
    if reading.stopped and known.state in (State.DONE, State.FAILED):
        state = State(known.state)  # a host that stops later changes nothing about that
    return Agent(
        host=host,
        evidence=Evidence(id=known.id, rev=known.rev, record=record, problem=problem),
        verdict=Verdict(state=state, reason=reason, since=since),
        now=time.time(),
        host_stopped=reading.stopped,
    )


def _remember(
    path: str, host: Host, memory: Memory | None, found: Sequence[Agent], ids: Sequence[str] | None
) -> None:
    before = memory.agents if memory else ()
    others = () if ids is None else tuple(each for each in before if each.id not in ids)
    now = time.time()
    agents = tuple(sorted((*others, *map(_known, found)), key=lambda each: each.id))
    if memory and agents == before and 0 <= now - memory.time < FRESH:
        return
    _write(path, Memory(host=host.ref.to_json(), time=now, agents=agents))


def _known(agent: Agent) -> Known:
    record = agent.evidence.record
    plain = json.loads(json.dumps(record.to_json())) if record else None
    return Known(id=agent.id, rev=agent.evidence.rev, record=plain, state=str(agent.state))


def _load(path: str) -> Memory | None:
    try:
        with open(path, "rb") as file:
            return Memory.from_json(json.load(file))
    except (OSError, ValueError, BadRecord):
        return None


def _write(path: str, memory: Memory) -> None:
    """By rename; a cache that cannot be written is no reason to fail."""
    temporary = f"{path}.{os.urandom(6).hex()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            json.dump(memory.to_json(), file)
        os.rename(temporary, path)
    except OSError:
        try:
            os.unlink(temporary)
        except OSError:
            pass
