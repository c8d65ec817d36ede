"""The last reading of each remote host, in `cache/hosts/<id>.json`, for when it is unreachable."""

from __future__ import annotations

import os
import time

from mngr import files
from mngr.errors import BadRecord, MngrError, Unreachable
from mngr.hosts.base import Capabilities, HostReading, HostRef
from mngr.model import jsontext
from mngr.model.events import iso
from mngr.model.records import AgentRecord
from mngr.model.state import Evidence, Judgement, State
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from mngr.hosts.base import Host
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World


class Known(Struct):
    """One agent as last read."""

    id: str
    rev: int
    record: Json
    state: str


class Memory(Struct):
    """The last answer of one host; the time of the answer is the file's modification time."""

    host: Json
    agents: tuple[Known, ...] = ()


class AbsentHost:
    """A host whose provider cannot be asked; every attempt to use it fails."""

    capabilities = Capabilities()
    environment: dict[str, str] = {}
    home = socket = "/nonexistent"
    patience = 0.0
    greets = False

    def __init__(self, ref: HostRef, error: str) -> None:
        self.ref = ref
        self._error = error

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise Unreachable(f"host {self.ref.name} cannot be reached: {self._error}")

    run = put = swap = _fail

    def read(
        self, ids: Sequence[str] | None = None, after: Sequence[str] = (), patience: float = 0.0
    ) -> HostReading:
        """Return an empty reading without a problem: the provider's failure is reported already."""
        return HostReading(error=f"host {self.ref.name} cannot be reached: {self._error}")

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        return ["sh", "-c", 'echo "$0" >&2; exit 5', f"host {self.ref.name}: {self._error}"]


def hosts(home: str, provider: str, error: str) -> list[Host]:
    """Return the hosts a provider had when it last answered."""
    refs = [HostRef.from_json(memory.host) for memory in _memories(home)]
    return [AbsentHost(ref, error) for ref in refs if ref.provider == provider]


def forget(home: str, host_id: str) -> None:
    files.remove(os.path.join(home, "cache", "hosts", f"{host_id}.json"))


def _memories(home: str) -> list[Memory]:
    folder = os.path.join(home, "cache", "hosts")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = (_load(os.path.join(folder, name)) for name in names if name.endswith(".json"))
    return [memory for memory in found if memory]


def remembered_names(home: str) -> list[str]:
    """Return the remembered names of agents on other hosts, for completion."""
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
    """Remember and return the agents found; for an unanswering host, the remembered ones."""
    path = _path(world, host)
    memory = _load(path)
    if reading.error and not found:
        known = memory.agents if memory else ()
        since = _touched(path)
        wanted = [each for each in known if ids is None or each.id in ids]
        return [_recalled(host, each, reading, since) for each in wanted]
    if not reading.error:
        _remember(path, host, memory, found, ids)
    return found


def meant(world: World, word: str) -> Agent | None:
    """Return the one remembered agent of another host that a word can mean.

    None if nothing is remembered, or if several hosts have to be asked. Callers must check on the
    host that the record has not changed since.
    """
    from mngr.model.address import is_agent_id, parse_address
    from mngr.ops.look.listing import asked, one

    hosts = asked(world, [word])
    others = [host for host in hosts if not hasattr(host, "claimed")]
    if not is_agent_id(word):  # an id means the same agent everywhere
        here = [each.claimed(parse_address(word).name) for each in hosts if each not in others]  # type: ignore[attr-defined]
        if len(others) != 1 or any(here):
            return None
    found = []
    for host in others:
        host.patience = world.config.seconds("hosts.timeout")
        if memory := _load(_path(world, host)):
            found += [_last_seen(host, known) for known in memory.agents]
    try:
        agent = one(found, word)
    except MngrError:
        return None
    return agent if agent.evidence.record else None


def _last_seen(host: Host, known: Known) -> Agent:
    reading = HostReading(now=time.time(), error="not checked yet")
    return _recalled(host, known, reading, reading.now)


def _recalled(host: Host, known: Known, reading: HostReading, since: float) -> Agent:
    from mngr.ops.look.listing import Agent

    try:
        record, problem = AgentRecord.from_json(known.record), ""
    except BadRecord as bad:
        record, problem = None, bad.message
    reason = f"{reading.error} (last known {known.state} at {iso(since)[:19]}Z)"
    state = State.STOPPED if reading.stopped else State.UNREACHABLE
    if reading.stopped and known.state in (State.DONE, State.FAILED):
        state = State(known.state)  # a host that is stopped later does not change this
    return Agent(
        host=host,
        evidence=Evidence(id=known.id, rev=known.rev, record=record, problem=problem),
        verdict=Judgement(state=state, reason=reason, since=since),
        now=time.time(),
        host_stopped=reading.stopped,
    )


def _remember(
    path: str, host: Host, memory: Memory | None, found: Sequence[Agent], ids: Sequence[str] | None
) -> None:
    before = {each.id: each for each in memory.agents} if memory else {}
    others = [] if ids is None else [each for each in before.values() if each.id not in ids]
    agents = [*others, *(_known(agent, before.get(agent.id)) for agent in found)]
    agents.sort(key=lambda each: each.id)
    fresh = Memory(host=host.ref.to_json(), agents=tuple(agents))
    if fresh != memory or not _touched(path, now=True):
        _write(path, fresh)


def _known(agent: Agent, before: Known | None) -> Known:
    """Return the old entry if revision and state are unchanged: then the record is, too."""
    rev, state, record = agent.evidence.rev, str(agent.state), agent.evidence.record
    if before and (before.rev, before.state) == (rev, state) and before.record and record:
        return before
    plain = record.to_json() if record else None
    return Known(id=agent.id, rev=rev, record=plain, state=state)


def _path(world: World, host: Host) -> str:
    return os.path.join(world.home, "cache", "hosts", f"{host.ref.id}.json")


def _touched(path: str, *, now: bool = False) -> float:
    """Return when the host last answered, or 0.0; with `now`, set that to the current time."""
    try:
        if now:
            os.utime(path)
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _load(path: str) -> Memory | None:
    try:
        with open(path, "rb") as file:
            return Memory.from_json(jsontext.loads(file.read()))
    except (OSError, ValueError, BadRecord):
        return None


def _write(path: str, memory: Memory) -> None:
    """Write the file by rename; a failure is ignored, because this is only a cache."""
    try:
        files.replace(path, jsontext.dumps(memory.to_json()).encode())
    except OSError:
        pass
