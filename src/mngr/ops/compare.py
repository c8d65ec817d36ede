"""What an agent did: committed, uncommitted and untracked, since its base."""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.ops import present
from mngr.ops.present import PrivateIndex, standing
from mngr.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.git import Repo
    from mngr.ops.listing import Agent
    from mngr.ops.present import Standing

# Not `git diff`: its prefixes and colours are the user's, and then no patch comes out of it. What
# is configured there must not decide what is run here either.
TREES = ("diff-tree", "-r")
PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--end-of-options")


class Difference(Struct):
    """Two trees of one repository, and what stayed out of sight."""

    repo: Repo
    old: str
    new: str
    head: str
    complaint: str = ""


def difference(agent: Agent, *, uncommitted: bool = False) -> Difference:
    """From its base, or from HEAD, to the files as they are."""
    at = standing(agent.host, agent.record)
    old = at.head if uncommitted else _base(agent, at)
    with PrivateIndex(agent.host, agent.record, at) as index:
        tree, complaint = present.visible_tree(index)
    return Difference(repo=at.repo, old=old, new=tree, head=at.head, complaint=complaint)


def _base(agent: Agent, at: Standing) -> str:
    base = agent.record.base_commit
    if base and at.repo.attempt("cat-file", "-e", f"{base}^{{commit}}").code == 0:
        return base
    known = f"its base {base[:12]} is not in {at.repo.path}" if base else "no base is known"
    raise MngrError(f"{agent.name}: {known}", "use --uncommitted to compare with HEAD")


def patch(found: Difference, paths: Sequence[str] = (), *, stat: bool = False) -> bytes:
    """As `git diff` prints it, byte by byte."""
    shape = ["--stat=100"] if stat else ["--patch", "-M"]
    return found.repo.git(*TREES, *shape, *PLAIN, found.old, found.new, "--", *paths)


def files(found: Difference, paths: Sequence[str] = ()) -> list[dict[str, Json]]:
    """One row per file; binary files have no line counts."""
    words = ["--numstat", "-z", "--no-renames", *PLAIN, found.old, found.new, "--", *paths]
    rows: list[dict[str, Json]] = []
    for entry in os.fsdecode(found.repo.git(*TREES, *words)).split("\0")[:-1]:
        added, deleted, path = entry.split("\t", 2)
        counts: list[Json] = [int(n) if n.isdigit() else None for n in (added, deleted)]
        rows.append({"path": path, "added": counts[0], "deleted": counts[1]})
    return rows


def commits(agent: Agent, paths: Sequence[str] = ()) -> list[dict[str, Json]]:
    """Since its base, newest first."""
    at = standing(agent.host, agent.record)
    words = ["log", "-z", "--no-color", "--format=%H%x1f%h%x1f%an%x1f%cI%x1f%s"]
    log = at.repo.git(*words, "--end-of-options", f"{_base(agent, at)}..HEAD", "--", *paths)
    keys = ("commit", "short", "author", "time", "subject")
    lines = log.decode("utf-8", "replace").rstrip("\0").split("\0")
    return [dict(zip(keys, line.split("\x1f", 4), strict=True)) for line in lines if line]
