"""Restore a work directory to a snapshot.

Only files change; HEAD, the branch and the index do not. Files that would be lost are saved in a
snapshot first.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError
from mngr.git.exchange import gitlinks
from mngr.git.repository import Checkout, GitError, Repo
from mngr.git.stranger import Stranger
from mngr.hosts.base import Host
from mngr.model.struct import Struct
from mngr.ops.keep import snapshot, trees
from mngr.ops.keep.snapshot import Snapshot
from mngr.ops.keep.trees import PrivateIndex, standing
from mngr.ops.look.listing import Agent
from mngr.ops.steps import step
from mngr.ops.work import transport


class Restored(Struct):
    """The snapshot taken before, if any, and the number of changed files."""

    saved: Snapshot | None
    files: int
    remarks: tuple[str, ...] = ()


def restore(agent: Agent, wanted: Snapshot) -> Restored:
    """Restore the files of a snapshot; save files that would be lost in a new snapshot first."""
    at = standing(agent.host, agent.record)
    with PrivateIndex(agent.host, agent.record) as index:
        tree = trees.whole_tree(index)
        in_the_way = _in_the_way(agent.host, index, tree, wanted.tree)
        if in_the_way:
            tree = trees.whole_tree(index, in_the_way)
        if tree == wanted.tree:
            return Restored(saved=None, files=0)
        saved = _kept_before(agent, at, tree, wanted)
        step("present_saved")
        remarks = tuple(_submodule_remarks(index, tree, wanted))
        _turn(index, tree, wanted.commit)
        step("files_restored")
        files = _names(index, tree, wanted.tree)
    return Restored(saved=saved, files=len(files), remarks=remarks)


def _names(index: Repo, old: str, new: str, only: str = "") -> list[str]:
    chosen = [f"--diff-filter={only}"] if only else []
    words = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", *chosen, old, new]
    return os.fsdecode(index.git(*words)).split("\0")[:-1]


# Print those paths of standard input that exist.
EXISTING = r"""cd "$1" && xargs -0 sh -c '
for path; do if [ -f "$path" ] || [ -L "$path" ]; then printf "%s\0" "$path"; fi; done' mngr"""


def _in_the_way(host: Host, index: Repo, old: str, new: str) -> bytes:
    """Return files that are ignored now but are in the snapshot, and would be overwritten."""
    added = _names(index, old, new, only="A")
    if not added:
        return b""
    listed = os.fsencode("".join(f"./{path}\0" for path in added))
    done = host.run(["sh", "-c", EXISTING, "mngr", index.path], input=listed, timeout=600)
    done.raise_if_failed(f"the files in {index.path} could not be read")
    return done.stdout


def _kept_before(agent: Agent, at: Checkout, tree: str, target: Snapshot) -> Snapshot | None:
    """Snapshot the current files; return None if HEAD or another snapshot has the same files."""
    repo = transport.theirs(agent.host, agent.record)
    if at.head and tree == repo.line("rev-parse", f"{at.head}^{{tree}}"):
        return None
    known = snapshot.listed(agent, repo)
    if any(each.tree == tree for each in known):
        return None
    return snapshot.keep(
        agent, at, tree, known, note=f"before restoring {target.name or target.number}"
    )


def _turn(index: Stranger, old: str, new: str) -> None:
    """Change the files from tree `old` to `new`; raise if one has changed since it was read."""
    try:
        index.replace(writes=True).git("read-tree", "-m", "-u", old, new)
    except GitError as error:
        raise MngrError(error.message, "nothing was restored; try again") from None
    if index.attempt("diff-files", "--quiet", "--ignore-submodules=all").code:
        raise MngrError(
            f"{index.path} changed while it was being restored", "stop the agent, then try again"
        )


def _submodule_remarks(index: Repo, tree: str, wanted: Snapshot) -> list[str]:
    """Return a remark for each submodule at another commit: git does not move submodules."""
    now, then = gitlinks(index, tree), gitlinks(index, wanted.tree)
    return [
        f"the submodule {path} was at {commit[:12]} in the snapshot"
        for path, commit in then.items()
        if now.get(path) != commit
    ]
