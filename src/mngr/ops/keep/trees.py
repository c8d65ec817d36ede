"""Save the current state of a work tree as a git tree.

It uses a private copy of the agent's index: stat data is reused, so only changed files are read,
and the agent's index, files and times are not changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mngr.errors import MngrError, Refused
from mngr.git import own_index
from mngr.git import repository as git
from mngr.git.exchange import gitlinks
from mngr.git.own_index import TakenTree
from mngr.git.repository import GitError
from mngr.git.stranger import Stranger
from mngr.hosts.base import Host
from mngr.model.records import AgentRecord, agent_dir
from mngr.model.struct import Struct
from mngr.ops.work import transport

LONG = 3600.0
FORCED = "--literal-pathspecs add -f --pathspec-from-file=- --pathspec-file-nul".split()


class Standing(Struct):
    """The position of a work directory in its repository."""

    repo: Stranger
    common_dir: str
    index: str
    head: str
    """The commit; "" if there is none yet."""
    branch: str


def standing(host: Host, record: AgentRecord) -> Standing:
    """Return the position of a work directory; raise unless it is the top of a git work tree."""
    return read_standing(host, record, own_index.standing(transport.theirs(host, record)))


def read_standing(host: Host, record: AgentRecord, answer: str) -> Standing:
    lines = answer.split("\n")
    # A prefix means that a parent directory is a repository, which does not contain this one.
    if len(lines) < 3 or lines[0]:
        raise _no_repository(host, record)
    commits = [line for line in lines[3:] if len(line) in (40, 64) and "/" not in line]
    branches = [line for line in lines[3:] if line.startswith("refs/heads/")]
    return Standing(
        repo=transport.theirs(host, record),
        common_dir=lines[1],
        index=lines[2],
        head=commits[0] if commits else "",
        branch=branches[0].removeprefix("refs/heads/") if branches else "",
    )


def _no_repository(host: Host, record: AgentRecord) -> MngrError:
    if host.run(["test", "-d", record.work_dir], timeout=30).code:
        return MngrError(f"the work directory of {record.name} is gone: {record.work_dir}")
    return MngrError(
        f"{record.name} has no git repository of its own: {record.work_dir}",
        "this command requires one",
    )


class PrivateIndex:
    """`with PrivateIndex(host, record, standing) as repo:` lets git use a copy of the index."""

    def __init__(self, host: Host, record: AgentRecord, at: Standing) -> None:
        self._host, self._at, self._repo = host, at, _indexed(host, record)

    def __enter__(self) -> Stranger:
        copy = ["cp", "-p", self._at.index, self._repo.index]  # why -p: see own_index
        done = self._host.run(copy, timeout=60)
        if done.code and self._host.run(["test", "-e", self._at.index], timeout=60).code == 0:
            raise MngrError(f"the index could not be copied: {done.complaint}")
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


def _indexed(host: Host, record: AgentRecord) -> Stranger:
    # `gc` removes leftovers of interrupted writes from this folder.
    folder = agent_dir(host.home, record.id)
    path = os.path.join(folder, f".index.{os.urandom(6).hex()}")
    return transport.theirs(host, record).replace(index=path, timeout=LONG)


def take(host: Host, record: AgentRecord, *for_each_ref: str) -> tuple[Standing, TakenTree]:
    """Return `standing` and `whole_tree`, with what is left out, in one round trip."""
    work = transport.theirs(host, record).replace(timeout=LONG)
    taken = _understood(lambda: own_index.take_afresh(work, *for_each_ref))
    at = read_standing(host, record, taken.standing)
    _refuse_inner(at, taken)
    return at, taken.replace(ignored=_outermost(taken.ignored))


def whole_tree(at: Standing, index: Stranger, extra: bytes = b"") -> str:
    """Return a tree of all files not ignored, and `extra`; raise if git cannot store one."""
    if extra:
        index.git(*FORCED, input=extra)
    taken = _understood(lambda: own_index.take(index))
    _refuse_inner(at, taken)
    return taken.tree


def _understood(take: Callable[[], TakenTree]) -> TakenTree:
    try:
        return take()
    except GitError as error:
        raise _refusal(error) from None


def _refuse_inner(at: Standing, taken: TakenTree) -> None:
    for path in gitlinks(at.repo, taken.tree) if taken.linked else ():
        _refuse_unsaved(at.repo, path)


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
