"""Count the commits of each agent and the lines they changed, cheaply enough for every `list`.

The tip of a work directory is read from git's own files, without a process. The difference between
a base and a tip never changes, so git computes it once and it is kept in `cache/changes.json`.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError, TimedOut
from mngr.hosts import agent_files
from mngr.model import jsontext
from mngr.model.records import AgentRecord
from mngr.model.struct import Struct
from mngr.ops.look.listing import Agent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Span = tuple[str, str]
"""A base and a tip."""
KEPT = 2000
"""Number of spans kept in the cache; the oldest are dropped."""
PATIENCE = 5.0
"""Seconds that git may take for a group of agents, because one can put a pipe among its objects."""
BATCH = 500
"""Agents per group: their directories must fit into one variable."""
_LONGEST_REF, _LARGEST_PACK = 4096, 8 << 20


class Changes(Struct):
    commits: int = 0
    added: int = 0
    removed: int = 0

    def __str__(self) -> str:
        lines = f" +{self.added} -{self.removed}" if self.added or self.removed else ""
        return f"{self.commits}{lines}"


def changes(home: str, agents: Sequence[Agent]) -> list[Changes | None]:
    """Return the changes per agent, in order; None if unknown or if its files are not here."""
    look = _Refs()
    spans = [_span(look, agent) for agent in agents]
    wanted = {span for span in spans if span and span[0] != span[1]}
    known = _known(home) if wanted else {}
    missing = wanted - known.keys()
    if missing:
        owners = {span: agent for span, agent in zip(spans, agents, strict=True) if span}
        known |= _asked((owners[span], span) for span in missing)
        _keep(home, known)
    return [
        None if not span else known.get(span) if span in wanted else Changes() for span in spans
    ]


def _span(look: _Refs, agent: Agent) -> Span | None:
    record = agent.evidence.record
    if record is None or record.transfer not in ("git-worktree", "git-mirror"):
        return None
    if not record.repository or not agent.host.capabilities.shares_files:
        return None
    tip = look.tip(record) if record.base_commit else ""
    return (record.base_commit, tip) if tip else None


class _Refs:
    """Reads refs of repositories. Agents can write there, so no file is trusted or waited for."""

    def __init__(self) -> None:
        self._packed: dict[str, dict[str, str]] = {}

    def tip(self, record: AgentRecord) -> str:
        """Return the commit that an agent's work directory is at, or ""."""
        common = folder = os.path.join(record.work_dir, ".git")
        if record.transfer == "git-worktree":
            common = record.repository
            folder = os.path.join(common, "worktrees", os.path.basename(record.work_dir))
        head = _text(os.path.join(folder, "HEAD"))
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


def _asked(spans: Iterable[tuple[Agent, Span]]) -> dict[Span, Changes | None]:
    from mngr.ops.work import mirror, transport

    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for agent, (base, tip) in spans:
        record, objects = agent.record, ""
        if record.transfer == "git-mirror":  # only the clone has its new commits
            objects = os.path.join(record.work_dir, ".git", "objects")
        place = mirror.place(agent.host, record.repository) if objects else transport.origin(record)
        groups.setdefault((place, base), []).append((tip, objects))
    found: dict[Span, Changes | None] = {}
    for (place, base), tips in groups.items():
        if not os.path.isdir(place):
            continue
        for start in range(0, len(tips), BATCH):
            found |= _counted(place, base, tips[start : start + BATCH])
    return found


def _counted(place: str, base: str, tips: Sequence[tuple[str, str]]) -> dict[Span, Changes | None]:
    """Return the changes by span; None if git is held up by the objects of that agent."""
    from functools import partial

    from mngr.git import progress
    from mngr.hosts import spawn
    from mngr.ops.work import transport

    env = spawn.environment()
    if objects := {each for _, each in tips} - {""}:
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _joined(objects)
    repo = transport.source(place).replace(run=partial(spawn.run, env=env), timeout=PATIENCE)
    try:
        counted = progress.distances(repo, base, [tip for tip, _ in tips])
    except MngrError as error:
        if len(tips) > 1:  # the HEAD of one agent can name a missing commit
            alone = (_counted(place, base, [each]) for each in tips)
            return {span: numbers for found in alone for span, numbers in found.items()}
        return {(base, tips[0][0]): None} if isinstance(error, TimedOut) else {}
    return {(base, tip): _changes(numbers) for tip, numbers in counted.items()}


def _changes(numbers: Sequence[int]) -> Changes | None:
    if not numbers:
        return None
    commits, added, removed = numbers
    return Changes(commits=commits, added=added, removed=removed)


def _joined(paths: Iterable[str]) -> str:
    """Return paths in the form that git reads from a variable, where a colon separates them."""
    escaped = (path.replace("\\", r"\\").replace('"', r"\"") for path in paths)
    return ":".join(f'"{path}"' for path in escaped)


def _path(home: str) -> str:
    return os.path.join(home, "cache", "changes.json")


def _known(home: str) -> dict[Span, Changes | None]:
    """Return the cached changes; an unreadable cache counts as empty."""
    try:
        with open(_path(home), "rb") as file:
            rows: list[tuple[str, str, *tuple[int, ...]]] = jsontext.loads(file.read())  # type: ignore[assignment]
        return {(base, tip): _changes(numbers) for base, tip, *numbers in rows}
    except (OSError, ValueError, TypeError):
        return {}


def _keep(home: str, known: dict[Span, Changes | None]) -> None:
    from mngr import files  # most commands write nothing

    path = _path(home)
    newest = list(known.items())[-KEPT:]
    rows = [[*span, *(each.to_json().values() if each else ())] for span, each in newest]
    try:
        files.replace(path, jsontext.dumps(rows).encode())
    except OSError:
        pass  # the next `list` asks git again
