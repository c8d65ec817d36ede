"""Read agents and their states, and resolve names."""

from __future__ import annotations

from mngr.errors import Ambiguous, MngrError, NotFound, Unreachable, UsageError, suggestion
from mngr.hosts import processes
from mngr.hosts.base import is_here
from mngr.model.address import is_agent_id, parse_address
from mngr.model.events import iso
from mngr.model.quoting import join
from mngr.model.records import AgentRecord, agent_dir
from mngr.model.state import STARTING, Evidence, Judgement, Signals, State, judge
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mngr.hosts.base import Host, HostReading, HostRef
    from mngr.hosts.local import LocalHost
    from mngr.model.address import Address
    from mngr.ops.world import World


class Agent(Struct):
    """One agent: its record, the evidence and the verdict."""

    host: Host
    evidence: Evidence
    verdict: Judgement
    now: float
    host_stopped: bool = False

    @property
    def id(self) -> str:
        return self.evidence.id

    @property
    def place(self) -> tuple[str, str]:
        """Return the ids of its host and of itself: a host made from an image has copies."""
        return self.host.ref.id, self.id

    @property
    def name(self) -> str:
        return self.evidence.record.name if self.evidence.record else self.evidence.id

    @property
    def state(self) -> State:
        return self.verdict.state

    @property
    def unfinished(self) -> bool:
        """Return whether its creation was interrupted."""
        return self.state is State.LOST and self.verdict.reason == "create interrupted"

    @property
    def folder(self) -> str:
        """Return the agent's state directory, a path on its host."""
        return agent_dir(self.host.home, self.id)

    @property
    def host_home(self) -> str:
        """Return mngr's home on the agent's host."""
        return self.host.home

    @property
    def shares_files(self) -> bool:
        """Return whether paths on the agent's host are paths on this machine."""
        return self.host.capabilities.shares_files

    @property
    def record(self) -> AgentRecord:
        """Return the record; raise if it cannot be read."""
        if self.evidence.record is None:
            raise MngrError(
                f"{self.id} has an unreadable record ({self.evidence.problem})",
                "see `mngr doctor`",
            )
        return self.evidence.record

    def to_json(self) -> dict[str, Json]:
        """Return the agent as JSON, in the format that scripts rely on."""
        record, verdict, evidence = self.evidence.record, self.verdict, self.evidence
        started, exit, pane = evidence.this_started, evidence.this_exit, evidence.pane
        ended = exit.time if exit else self.now
        alive = self.state in (State.RUNNING, State.WAITING)
        return {
            "id": self.id,
            "name": self.name,
            "type": record.type if record else "",
            "command": join(record.argv) if record else "",
            "argv": list(record.argv) if record else [],
            "work_dir": record.work_dir if record else "",
            "initial_branch": record.branch if record else "",
            "sandbox": record.sandbox if record else "",
            "create_time": iso(record.create_time) if record else None,
            "start_time": iso(started.time) if started else None,
            "state": str(verdict.state),
            "state_reason": verdict.reason,
            "state_since": iso(verdict.since),
            "pid": started.pid if started and alive else None,
            "labels": _labels(record),
            "project": record.project if record else "",
            "idle_seconds": max(0.0, self.now - pane.activity) if pane and alive else None,
            "runtime_seconds": max(0.0, ended - started.time)
            if started and (alive or exit)
            else None,
            "exit_code": verdict.exit_code,
            "usage": None,
            "archived": bool(record and record.archived),
            "host": _host_json(self),
            "plugin": dict(record.plugin) if record else {},
        }


def agents(
    world: World, ids: Sequence[str] | None = None, hosts: Sequence[Host] | None = None
) -> list[Agent]:
    """Return all agents, oldest first; those of a host that does not answer as last known."""
    readings = world.readings(ids, hosts)
    found = [each for host, reading in readings for each in read(world, host, reading, ids)]
    found.sort(key=lambda agent: (_created(agent), agent.id))
    return found


def read(world: World, host: Host, reading: HostReading, ids: Sequence[str] | None) -> list[Agent]:
    """Return the agents of a reading, which is kept for when the host does not answer."""
    mine = [_judged(world, host, reading, evidence) for evidence in reading.agents]
    if is_here(host):  # this machine always answers
        return mine
    from mngr.ops.look import remembered

    return remembered.completed(world, host, reading, mine, ids)


def candidates(world: World, words: Sequence[str], *, look: bool = True) -> list[Agent]:
    """Return enough agents to resolve `words`; with only the local host, few records are read.

    Without `look` their states may be missing, for callers that use only the records.
    """
    hosts = asked(world, words)
    if (quick := _quick(hosts)) is not None:
        try:
            ids = list(dict.fromkeys(_claimed(quick, word) for word in words))
            found = agents(world, ids, hosts) if look else _recorded(quick, ids)
            resolve(world, words, found)
            return found
        except (NotFound, UsageError):
            pass  # the full list is needed for the error and the nearest name
    return agents(world, hosts=hosts)


def asked(world: World, words: Sequence[str]) -> Sequence[Host]:
    """Return the hosts that the addresses name; all hosts if an agent may be anywhere."""
    everywhere, found = world.hosts(), []
    for word in words:
        if is_agent_id(word) or not (address := parse_address(word)).host:
            return everywhere
        found += [host for host in everywhere if _is_at(host.ref, address)]
    return list(dict.fromkeys(found)) or everywhere


def _quick(hosts: Sequence[Host]) -> LocalHost | None:
    """Return the local host if it is the only one: it reads single agents cheaply."""
    return hosts[0] if len(hosts) == 1 and hasattr(hosts[0], "claimed") else None  # type: ignore[return-value]


def _recorded(host: LocalHost, ids: Sequence[str]) -> list[Agent]:
    reading = host.recorded(ids)
    unknown = Judgement(state=State.UNREACHABLE, reason=reading.error, since=reading.now)
    return [
        Agent(host=host, evidence=evidence, verdict=unknown, now=reading.now)
        for evidence in reading.agents
    ]


def _claimed(host: LocalHost, word: str) -> str:
    """Return the id of the agent that claimed a name on this host."""
    if is_agent_id(word):
        return word
    name = parse_address(word).name
    holder = host.claimed(name) if name else ""
    if not holder:
        raise NotFound(f"no host has the agent {name!r}")
    return holder


def _created(agent: Agent) -> float:
    return agent.evidence.record.create_time if agent.evidence.record else 0.0


def _judged(world: World, host: Host, reading: HostReading, evidence: Evidence) -> Agent:
    record = evidence.record
    worker_alive, signals = False, Signals()
    if record is not None:
        if evidence.this_started is None and evidence.this_exit is None:
            worker_alive = processes.is_alive(
                record.worker, since=record.launch_time, now=reading.now
            )
        evidence = evidence.replace(now=reading.now)
        signals = _signals(world, record, evidence)
        if signals.working == STARTING:
            signals = _dialog(host, evidence, signals)
    verdict = judge(
        evidence,
        now=reading.now,
        worker_alive=worker_alive,
        signals=signals,
        unreachable=reading.error,
    )
    return Agent(host=host, evidence=evidence, verdict=verdict, now=reading.now)


def _signals(world: World, record: AgentRecord, evidence: Evidence) -> Signals:
    """Return the signals of the agent's type; none if the type fails."""
    try:
        return world.known_type(record.type).signals(evidence)
    except Exception as error:  # a plugin's type can raise anything
        world.note(record.type, error)
        return Signals()


def _dialog(host: Host, evidence: Evidence, signals: Signals) -> Signals:
    from mngr.ops.talk import dialogs  # few agents are about to start

    return dialogs.seen(host, evidence, signals)


def _labels(record: AgentRecord | None) -> dict[str, Json]:
    """Return the labels, with `project` among them for scripts of other tools."""
    if record is None:
        return {}
    return {**({"project": record.project} if record.project else {}), **record.labels}


def _host_json(agent: Agent) -> dict[str, Json]:
    ref = agent.host.ref
    return {
        "id": ref.id,
        "name": ref.name,
        "provider": ref.provider,
        "provider_name": ref.provider,
        "state": _host_state(agent),
        "tags": dict(ref.tags),
    }


def _host_state(agent: Agent) -> str:
    if agent.host_stopped:
        return "STOPPED"
    return "UNREACHABLE" if agent.state is State.UNREACHABLE else "RUNNING"


def resolve(
    world: World, targets: Sequence[str], pool: Sequence[Agent] | None = None
) -> list[Agent]:
    """Return exactly one agent per target, in the given order, without duplicates."""
    found, failures = find(targets, candidates(world, targets) if pool is None else pool)
    if failures:
        raise failures[0]
    return found


def find(targets: Sequence[str], pool: Sequence[Agent]) -> tuple[list[Agent], list[MngrError]]:
    """Return the agents that the targets name, each once, and an error for every other target."""
    called: dict[str, list[Agent]] = {}  # scanning all agents per target would be too slow
    for agent in pool:
        for word in {agent.id, agent.name}:
            called.setdefault(word, []).append(agent)
    chosen: dict[tuple[str, str], Agent] = {}
    failures: list[MngrError] = []
    for target in targets:
        try:
            agent = one(called.get(target, pool), target)
            chosen[agent.place] = agent
        except MngrError as error:
            failures.append(error)
    return list(chosen.values()), failures


def one(pool: Iterable[Agent], target: str) -> Agent:
    """Return the agent a target names; raise NotFound with the nearest name, or Ambiguous."""
    everything = list(pool)
    if is_agent_id(target):
        matches = [agent for agent in everything if agent.id == target]
    else:
        address = parse_address(target)
        if address.path is not None:
            hint = "remove the colon and the path"
            raise UsageError(f"{target!r} names a path, not an agent", hint)
        if not address.name:
            if not address.host:
                raise UsageError("the name of the agent is empty", "see `mngr list`")
            listed = f"`mngr list --include 'host.name == \"{address.host}\"'`"
            raise UsageError(f"{target!r} is not an agent", f"to list its agents: {listed}")
        matches = [agent for agent in everything if _meant(agent, address)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = ", ".join(
            f"{a.name}@{a.host.ref.name}.{a.host.ref.provider} ({a.id})" for a in matches
        )
        hint = "name its host or use its id"
        last = matches[-1].host
        if matches[0].id == matches[-1].id and not last.capabilities.new_hosts:
            hint = f"if both hosts are one machine, run `mngr host forget {last.ref.name}`"
        raise Ambiguous(f"{target!r} is ambiguous: {listed}", hint)
    hint = suggestion(target, [agent.name for agent in everything], "see `mngr list`")
    raise NotFound(f"no agent {target!r}", hint)


def _meant(agent: Agent, address: Address) -> bool:
    return address.name == agent.name and _is_at(agent.host.ref, address)


def _is_at(ref: HostRef, address: Address) -> bool:
    dotted = f"{address.host}.{address.provider}"  # box.example.com names no provider
    named = address.host in ("", ref.name, ref.id) and address.provider in ("", ref.provider)
    return named or dotted == ref.name


def check_reachable(agent: Agent) -> None:
    if agent.state is State.UNREACHABLE:
        raise Unreachable(f"{agent.name}: {agent.verdict.reason}", "see `mngr list`")


def refreshed(world: World, agent: Agent, reading: HostReading | None = None) -> Agent:
    """Read the agent again, or take it from a reading."""
    reading = reading or agent.host.read([agent.id])
    for evidence in reading.agents:
        return _judged(world, agent.host, reading, evidence)
    if reading.stopped:
        raise Unreachable(reading.error, reading.hint)
    raise NotFound(
        f"{agent.name} is gone", "it was destroyed in the meantime; see `mngr restore --list`"
    )
