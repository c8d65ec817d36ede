"""Columns of `list` that require more than the records; computed only on request."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.git import progress
from mngr.model.state import State
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mngr.git.progress import Looked
    from mngr.model.records import AgentRecord
    from mngr.model.struct import Json
    from mngr.ops.limits.usage import Usage
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

GIT = ("ahead", "behind", "dirty")
USED = ("cost", "tokens", "usage")
PARALLEL = 8
BATCH = 16
"""Agents per round trip: fewer cost more round trips to a remote host, more leave cores idle."""


def columns(world: World, agents: Sequence[Agent], names: Collection[str]) -> list[dict[str, Json]]:
    """Return one row per agent, in order; null if a value is not available."""
    rows: list[dict[str, Json]] = [dict.fromkeys(names) for _ in agents]
    parts = [_work(agents, names), _used(world, agents, names), _idle(agents)]
    parts.append(_changes(world, agents) if "changes" in names else ())
    for part in parts:
        for row, more in zip(rows, part, strict=False):
            row.update({name: value for name, value in more.items() if name in names})
    return rows


def _changes(world: World, agents: Sequence[Agent]) -> Sequence[dict[str, Json]]:
    from mngr.ops.look.changes import changes

    found = changes(world.home, agents)
    return [{"changes": each.to_json() if each else None} for each in found]


def _work(agents: Sequence[Agent], names: Collection[str]) -> Sequence[dict[str, Json]]:
    from concurrent.futures import ThreadPoolExecutor

    asked = [name for name in GIT if name in names]
    if not asked:
        return ()
    rows: dict[tuple[str, str], dict[str, Json]] = {}
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        for found in pool.map(lambda batch: _rows(batch, asked), _batches(agents)):
            rows.update(found)
    return [rows.get(agent.place, {}) for agent in agents]


def _batches(agents: Sequence[Agent]) -> list[list[Agent]]:
    """Group agents by host and source, as progress.look requires."""
    groups: dict[tuple[str, str, str], list[Agent]] = {}
    for agent in agents:
        record = agent.evidence.record
        if record is not None:
            key = (agent.host.ref.id, record.transfer, transport.origin(record))
            groups.setdefault(key, []).append(agent)
    return [
        group[at : at + BATCH] for group in groups.values() for at in range(0, len(group), BATCH)
    ]


def _rows(batch: Sequence[Agent], names: Sequence[str]) -> dict[tuple[str, str], dict[str, Json]]:
    host, record = batch[0].host, batch[0].record
    near = host.capabilities.shares_files
    # A worktree has the commits of its source; a clone may lack the newest ones.
    apart = not near or record.transfer == "git-mirror"
    upstream = _upstream(record) if apart and "behind" in names else ""
    try:
        source = transport.origin(record) if near else ""
        records = [each.record for each in batch]
        found = progress.look(host.run, host.home, source, names, records, upstream)
    except MngrError:
        return {}  # a host that does not answer is reported elsewhere
    if upstream:
        found = [_behind(each, one, upstream) for each, one in zip(batch, found, strict=True)]
    return {
        agent.place: {name: getattr(one, name) for name in names}
        for agent, one in zip(batch, found, strict=True)
    }


def _upstream(record: AgentRecord) -> str:
    """Return the current commit of the repository on this machine."""
    try:
        return (
            transport.source(transport.origin(record)).ask("rev-parse", "-q", "--verify", "HEAD")
            or ""
        )
    except MngrError:
        return ""  # the repository does not exist, or is on another machine


def _behind(agent: Agent, looked: Looked, upstream: str) -> Looked:
    """Count commits since its base on this machine if the agent's host lacks the newest ones."""
    if looked.behind is not None:
        return looked
    record = agent.record
    told = transport.source(transport.origin(record)).ask(
        "rev-list", "--count", f"{record.base_commit}..{upstream}"
    )
    return looked.replace(behind=int(told)) if told else looked


def _used(
    world: World, agents: Sequence[Agent], names: Collection[str]
) -> Sequence[dict[str, Json]]:
    from mngr.ops.limits import usage

    if not any(name in names for name in USED):
        return ()
    found = usage.of(world, agents)
    return [_usage(found.get(agent.id)) for agent in agents]


def _usage(used: Usage | None) -> dict[str, Json]:
    if used is None:
        return {}
    row = used.described()
    return {"cost": row["cost"], "tokens": row["tokens"], "usage": row}


def _idle(agents: Sequence[Agent]) -> Sequence[dict[str, Json]]:
    """Return the seconds since the agent started to wait, or since its last output."""
    return [{"idle": _idle_seconds(agent)} for agent in agents]


def _idle_seconds(agent: Agent) -> int | None:
    if agent.state is State.WAITING:
        return max(0, int(agent.now - agent.verdict.since))
    pane = agent.evidence.pane
    if agent.state is not State.RUNNING or pane is None:
        return None
    return max(0, int(agent.now - pane.activity))
