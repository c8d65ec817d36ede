"""Count the commits of each agent and the lines they changed, cheaply enough for every `list`.

The tip of a worktree is read from git's own files, without a process. The difference between a base
and a tip never changes, so git computes it once and it is kept in `cache/changes.json`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from mngr.errors import MngrError
from mngr.hosts import agent_files
from mngr.model import jsontext
from mngr.model.records import AgentRecord
from mngr.model.struct import Struct
from mngr.ops.look.listing import Agent

Span = tuple[str, str]
"""A base and a tip."""
KEPT = 2000
"""Number of spans kept in the cache; the oldest are dropped."""
_LONGEST_REF, _LARGEST_PACK = 4096, 8 << 20


class Changes(Struct):
    commits: int = 0
    added: int = 0
    removed: int = 0

    def __str__(self) -> str:
        lines = f" +{self.added} -{self.removed}" if self.added or self.removed else ""
        return f"{self.commits}{lines}"


def changes(home: str, agents: Sequence[Agent]) -> list[Changes | None]:
    """Return the changes per agent, in order; None if its work is not a local worktree."""
    look = _Refs()
    spans = [_span(look, agent) for agent in agents]
    wanted = {span for span in spans if span and span[0] != span[1]}
    known = _known(home) if wanted else {}
    missing = wanted - known.keys()
    if missing:
        records = {s: a.record for s, a in zip(spans, agents, strict=True) if s}
        known |= _asked((records[span], span) for span in missing)
        _keep(home, known)
    return [
        None if not span else known.get(span) if span in wanted else Changes() for span in spans
    ]


def _span(look: _Refs, agent: Agent) -> Span | None:
    record = agent.evidence.record
    if record is None or record.transfer != "git-worktree" or not record.repository:
        return None
    if not agent.host.capabilities.shares_files:
        return None
    tip = look.tip(record) if record.base_commit else ""
    return (record.base_commit, tip) if tip else None


class _Refs:
    """Reads refs of repositories. Agents can write there, so no file is trusted or waited for."""

    def __init__(self) -> None:
        self._packed: dict[str, dict[str, str]] = {}

    def tip(self, record: AgentRecord) -> str:
        """Return the commit that an agent's worktree is at, or ""."""
        common = record.repository
        name = os.path.basename(record.work_dir)
        head = _text(os.path.join(common, "worktrees", name, "HEAD"))
        ref = head.removeprefix("ref: ")
        if ref != head:
            inside = ref.startswith("refs/") and ".." not in ref and "\0" not in ref
            head = (_text(os.path.join(common, ref)) or self._pack(common, ref)) if inside else ""
        return head if _is_commit(head) else ""

    def _pack(self, common: str, ref: str) -> str:
        if common not in self._packed:
            lines = _text(os.path.join(common, "packed-refs"), _LARGEST_PACK).split("\n")
            pairs = (line.split(" ", 1) for line in lines if line[:1] not in ("#", "^", ""))
            self._packed[common] = {name: commit for commit, name in pairs}
        return self._packed[common].get(ref, "")


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and not text.strip("0123456789abcdef")


def _text(path: str, limit: int = _LONGEST_REF) -> str:
    try:
        return os.fsdecode(agent_files.read(path, limit)[:limit]).strip()
    except OSError:
        return ""


def _asked(spans: Iterable[tuple[AgentRecord, Span]]) -> dict[Span, Changes]:
    from mngr.git import progress
    from mngr.ops.work import transport

    groups: dict[tuple[str, str], list[str]] = {}
    for record, (base, tip) in spans:
        groups.setdefault((transport.origin(record), base), []).append(tip)
    found: dict[Span, Changes] = {}
    for (source, base), tips in groups.items():
        try:
            counted = progress.distances(transport.here(source), base, tips)
        except MngrError:
            continue  # the commit no longer exists; `list` shows no number
        for tip, numbers in counted.items():
            found[base, tip] = Changes(commits=numbers[0], added=numbers[1], removed=numbers[2])
    return found


def _path(home: str) -> str:
    return os.path.join(home, "cache", "changes.json")


def _known(home: str) -> dict[Span, Changes]:
    """Return the cached changes; an unreadable cache counts as empty."""
    try:
        with open(_path(home), "rb") as file:
            rows: list[tuple[str, str, int, int, int]] = jsontext.loads(file.read())  # type: ignore[assignment]
        return {
            (base, tip): Changes(commits=commits, added=added, removed=removed)
            for base, tip, commits, added, removed in rows
        }
    except (OSError, ValueError, TypeError):
        return {}


def _keep(home: str, known: dict[Span, Changes]) -> None:
    from mngr import files  # most commands write nothing

    path = _path(home)
    newest = list(known.items())[-KEPT:]
    rows = [[*span, each.commits, each.added, each.removed] for span, each in newest]
    try:
        files.replace(path, jsontext.dumps(rows).encode())
    except OSError:
        pass  # the next `list` asks git again
