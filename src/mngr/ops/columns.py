"""Columns of `list` that cost a look into each work directory: only for who asks for them."""

from __future__ import annotations

from mngr import git
from mngr.errors import MngrError
from mngr.git import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mngr.ops.listing import Agent
    from mngr.struct import Json

NAMES = ("ahead", "behind", "dirty")
PARALLEL = 8


def columns(agents: Sequence[Agent], names: Collection[str]) -> list[dict[str, Json]]:
    """One row per agent, in order; null where there is nothing to look at."""
    from concurrent.futures import ThreadPoolExecutor

    heads = _Heads()
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(lambda agent: _row(agent, names, heads), agents))


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
