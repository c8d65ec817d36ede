"""Report the changes of an agent since its base: committed, uncommitted and untracked."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.git import own_index
from mngr.git.own_index import Difference
from mngr.model.struct import Json
from mngr.ops.keep import trees
from mngr.ops.keep.trees import standing
from mngr.ops.look.listing import Agent
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def difference(
    agent: Agent, *, uncommitted: bool = False, paths: Sequence[str] = (), stat: bool = False
) -> Difference:
    """Return the difference between its base, or HEAD, and the current files."""
    work = transport.theirs(agent.host, agent.record).replace(timeout=trees.LONG)
    base = "HEAD" if uncommitted else agent.record.base_commit
    shape = "--stat=100" if stat else "--patch -M"
    found = own_index.compare(work, base, shape, paths)
    trees.at_top(agent.host, agent.record, found.at)
    if not found.old:
        raise _no_base(agent)
    return found


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
