"""Report the changes of an agent since its base: committed, uncommitted and untracked."""

from __future__ import annotations

import os
from collections.abc import Sequence

from mngr.errors import MngrError
from mngr.git import own_index
from mngr.model.struct import Json, Struct
from mngr.ops.keep import trees
from mngr.ops.keep.trees import standing
from mngr.ops.look.listing import Agent
from mngr.ops.work import transport


class Difference(Struct):
    """How an agent's files differ from a commit, and what the comparison does not include."""

    old: str
    head: str
    patch: bytes
    """The exact output of `git diff`, or line counts if they were requested."""
    rows: bytes
    complaint: str = ""

    def files(self) -> list[dict[str, Json]]:
        """Return one row per file; binary files have no line counts."""
        rows: list[dict[str, Json]] = []
        for entry in os.fsdecode(self.rows).split("\0")[:-1]:
            added, deleted, path = entry.split("\t", 2)
            counts: list[Json] = [int(n) if n.isdigit() else None for n in (added, deleted)]
            rows.append({"path": path, "added": counts[0], "deleted": counts[1]})
        return rows


def difference(
    agent: Agent, *, uncommitted: bool = False, paths: Sequence[str] = (), stat: bool = False
) -> Difference:
    """Return the difference between its base, or HEAD, and the current files."""
    work = transport.theirs(agent.host, agent.record).replace(timeout=trees.LONG)
    base = "HEAD" if uncommitted else agent.record.base_commit
    shape = "--stat=100" if stat else "--patch -M"
    found = own_index.compare(work, base, shape, paths)
    at = trees.at_top(agent.host, agent.record, found.at)
    if not found.old:
        raise _no_base(agent)
    return Difference(
        old=found.old, head=at.head, patch=found.text, rows=found.rows, complaint=found.complaint
    )


def _no_base(agent: Agent) -> MngrError:
    base = agent.record.base_commit
    known = (
        f"its base {base[:12]} is not in {agent.record.work_dir}" if base else "no base is known"
    )
    return MngrError(f"{agent.name}: {known}", "use --uncommitted to compare with HEAD")


def commits(agent: Agent, paths: Sequence[str] = ()) -> list[dict[str, Json]]:
    """Return the commits since its base, newest first."""
    standing(agent.host, agent.record)
    repo, base = transport.theirs(agent.host, agent.record), agent.record.base_commit
    if not base or repo.attempt("cat-file", "-e", f"{base}^{{commit}}").code:
        raise _no_base(agent)
    words = ["log", "-z", "--no-color", "--format=%H%x1f%h%x1f%an%x1f%cI%x1f%s"]
    log = repo.git(*words, "--end-of-options", f"{base}..HEAD", "--", *paths)
    keys = ("commit", "short", "author", "time", "subject")
    lines = log.decode("utf-8", "replace").rstrip("\0").split("\0")
    return [dict(zip(keys, line.split("\x1f", 4), strict=True)) for line in lines if line]
