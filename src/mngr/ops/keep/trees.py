"""Save the current state of a work tree as a git tree.

It uses a private copy of the agent's index: stat data is reused, so only changed files are read,
and the agent's index, files and times are not changed.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError, Refused
from mngr.git import own_index
from mngr.git import repository as git
from mngr.git.exchange import gitlinks
from mngr.git.own_index import TakenTree
from mngr.git.repository import Checkout, GitError
from mngr.git.stranger import Stranger
from mngr.hosts.base import Host
from mngr.model.records import AgentRecord, agent_dir
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LONG = 3600.0
FORCED = "--literal-pathspecs add -f --pathspec-from-file=- --pathspec-file-nul".split()


def standing(host: Host, record: AgentRecord) -> Checkout:
    """Return the position of a work directory; raise unless it is the top of a git work tree."""
    return at_top(host, record, git.checkout(transport.theirs(host, record)))


def at_top(host: Host, record: AgentRecord, at: Checkout | None) -> Checkout:
    # If the top is a parent directory, its repository does not contain this directory.
    if at is None or at.top != record.work_dir:
        raise _no_repository(host, record)
    return at


def _no_repository(host: Host, record: AgentRecord) -> MngrError:
    if host.run(["test", "-d", record.work_dir], timeout=30).code:
        return MngrError(f"the work directory of {record.name} is gone: {record.work_dir}")
    return MngrError(
        f"{record.name} has no git repository of its own: {record.work_dir}",
        "this command requires one",
    )


class PrivateIndex:
    """`with PrivateIndex(host, record) as repo:` lets git use a copy of the index."""

    def __init__(self, host: Host, record: AgentRecord) -> None:
        # `gc` removes leftovers of interrupted writes from this folder.
        path = os.path.join(agent_dir(host.home, record.id), f".index.{os.urandom(6).hex()}")
        self._host = host
        self._repo = transport.theirs(host, record).replace(index=path, timeout=LONG)

    def __enter__(self) -> Stranger:
        own_index.fill(self._repo)
        return self._repo

    def __exit__(self, *_: object) -> None:
        from threading import Thread

        Thread(target=self._remove).start()  # no caller has to wait for this

    def _remove(self) -> None:
        try:
            path = self._repo.index
            self._host.run(["rm", "-f", path, f"{path}.lock"], timeout=60)
        except MngrError:
            pass  # the host does not answer; `gc` removes it later


def take(host: Host, record: AgentRecord, *for_each_ref: str) -> tuple[Checkout, TakenTree]:
    """Return `standing` and `whole_tree`, with what is left out, in one round trip."""
    work = transport.theirs(host, record).replace(timeout=LONG)
    taken = _understood(lambda: own_index.take_afresh(work, *for_each_ref))
    at = at_top(host, record, taken.at)
    _refuse_inner(work, taken)
    return at, taken.replace(ignored=_outermost(taken.ignored))


def whole_tree(index: Stranger, extra: bytes = b"") -> str:
    """Return a tree of all files not ignored, and `extra`; raise if git cannot store one."""
    if extra:
        index.git(*FORCED, input=extra)
    taken = _understood(lambda: own_index.take(index))
    _refuse_inner(index, taken)
    return taken.tree


def _understood(take: Callable[[], TakenTree]) -> TakenTree:
    try:
        return take()
    except GitError as error:
        raise _refusal(error) from None


def _refuse_inner(work: Stranger, taken: TakenTree) -> None:
    for path in gitlinks(work, taken.tree) if taken.linked else ():
        _refuse_unsaved(work.replace(index=""), path)


def _refusal(error: GitError) -> MngrError:
    mark = " does not have a commit checked out"
    if mark not in error.message:
        return error
    path = error.message.split(mark)[0].rpartition("error: ")[2].strip("'/")
    return _nested(path)


def _nested(path: str) -> Refused:
    return Refused(
        f"{path} is a separate git repository and cannot be part of a snapshot",
        "move it away, or add it to .gitignore",
    )


def _refuse_unsaved(repo: Stranger, path: str) -> None:
    """Raise if a submodule has changes: only its commit is saved."""
    modules = os.path.join(repo.path, ".gitmodules")
    listed = repo.ask("config", "-f", modules, "-z", "--get-regexp", r"\.path$") or ""
    if path not in [entry.partition("\n")[2] for entry in listed.split("\0")]:
        raise _nested(path)
    inside = repo.inside(path)
    if git.checkout(inside) is None:
        return  # not checked out
    if git.count_changes(inside):
        raise Refused(f"the submodule {path} has uncommitted changes", "commit them there first")


def _outermost(paths: list[str]) -> list[str]:
    """Return each directory once, without nested entries such as ignored repositories in it."""
    found: list[str] = []
    for path in paths:
        if not (found and found[-1].endswith("/") and path.startswith(found[-1])):
            found.append(path)
    return found
