"""Columns of `list` that cost a look at more than the records: only for who asks for them."""

from __future__ import annotations

from mngr import git
from mngr.errors import MngrError
from mngr.git import Repo
from mngr.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mngr.ops.listing import Agent
    from mngr.ops.usage import Usage
    from mngr.ops.world import World
    from mngr.struct import Json

GIT = ("ahead", "behind", "dirty")
USED = ("cost", "tokens", "usage")
PARALLEL = 8


def columns(world: World, agents: Sequence[Agent], names: Collection[str]) -> list[dict[str, Json]]:
    """One row per agent, in order; null where there is nothing to look at."""
    rows: list[dict[str, Json]] = [dict.fromkeys(names) for _ in agents]
    parts = [_work(agents, names), _used(world, agents, names), _idle(agents)]
    for part in parts:
        for row, more in zip(rows, part, strict=False):
            row.update({name: value for name, value in more.items() if name in names})
    return rows


def _work(agents: Sequence[Agent], names: Collection[str]) -> Sequence[dict[str, Json]]:
    from concurrent.futures import ThreadPoolExecutor

    asked = [name for name in GIT if name in names]
    if not asked:
        return ()
    heads = _Heads()
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(lambda agent: _row(agent, asked, heads), agents))


def _used(
    world: World, agents: Sequence[Agent], names: Collection[str]
) -> Sequence[dict[str, Json]]:
    from mngr.ops.usage import of_reachable

    if not any(name in names for name in USED):
        return ()
    found = of_reachable(world, agents)
    return [_usage(found.get(agent.id)) for agent in agents]


def _usage(used: Usage | None) -> dict[str, Json]:
    if used is None:
        return {}
    row = used.described()
    return {"cost": row["cost"], "tokens": row["tokens"], "usage": row}


def _idle(agents: Sequence[Agent]) -> Sequence[dict[str, Json]]:
    """Seconds since it began to wait for somebody, or else since it last wrote to its terminal."""
    return [{"idle": _idle_seconds(agent)} for agent in agents]


def _idle_seconds(agent: Agent) -> int | None:
    if agent.state is State.WAITING:
        return max(0, int(agent.now - agent.verdict.since))
    pane = agent.evidence.pane
    if agent.state is not State.RUNNING or pane is None:
        return None
    return max(0, int(agent.now - pane.activity))


class _Heads:
    """Where each source stands now, asked once per source and host."""

    def __init__(self) -> None:
        from threading import Lock

        self._known: dict[tuple[str, str], str] = {}
        self._lock = Lock()

    def of(self, agent: Agent) -> str:
        source = agent.record.source
        key = (agent.host.ref.id, source)
        with self._lock:
            if key not in self._known:
                repo = Repo(run=agent.host.run, path=source)
                self._known[key] = (repo.ask("rev-parse", "HEAD") if source else "") or ""
            return self._known[key]


def _row(agent: Agent, names: Collection[str], heads: _Heads) -> dict[str, Json]:
    row: dict[str, Json] = dict.fromkeys(names)
    record = agent.evidence.record
    if record is None:
        return row
    try:
        repo = Repo(run=agent.host.run, path=record.work_dir)
        if "dirty" in names:
            row["dirty"] = git.count_changes(repo)
        if "ahead" in names or "behind" in names:
            upstream = heads.of(agent) if "behind" in names else ""
            ahead, behind = git.distance(repo, record.base_commit, upstream)
            row.update({k: v for k, v in (("ahead", ahead), ("behind", behind)) if k in names})
    except MngrError:
        pass  # a silent host is named elsewhere
    return row
