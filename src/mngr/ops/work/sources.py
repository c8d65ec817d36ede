"""Resolve `create --from`: a directory, a repository's URL, an agent or a snapshot."""

from __future__ import annotations

import os
import time

from mngr.errors import Ambiguous, MngrError, UsageError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.exchange import Bare
from mngr.git.repository import Checkout, Repo, StatusLine
from mngr.hosts import spawn
from mngr.locks import Lock
from mngr.model.address import parse_address
from mngr.model.struct import Struct
from mngr.ops.work import mirror, transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts.base import Host
    from mngr.ops.keep.snapshot import Snapshot
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World


class Source(Struct):
    """The source of an agent's work."""

    path: str
    """The source as the record names it; `pull` fetches the work into it."""
    repo: Repo
    """The repository, with the function that runs git on it from this machine."""
    checkout: Checkout | None = None
    """Its commit and branch; None if it is not a repository."""
    changes: list[StatusLine] | None = None
    """Its uncommitted changes, if they were read."""
    bare: bool = False
    """Whether it has no work tree, so that only a clone can be made."""
    carried: Repo | None = None
    """A work tree on `folder_host` whose uncommitted changes are always copied."""
    overlay: str = ""
    """A commit whose files replace those of the base, as uncommitted changes."""
    subdir: str = ""
    """The user's subdirectory of the repository; the agent starts in the same one."""
    folder: str = ""
    folder_host: Host | None = None
    """The directory to copy if a copy is requested, and its host."""


def resolve(world: World, host: Host, text: str, *, status: bool = False) -> Source:
    """Return the source; a directory with that name takes precedence.

    With `status` the uncommitted changes of a directory are read too.
    """
    if os.path.isdir(text):
        path = os.path.abspath(text)
        return from_url(world, path) if _is_bare(path) else directory(host, path, status=status)
    if ":" in text:
        return from_url(world, text)
    if "/" in text:
        from mngr.ops.keep import snapshot

        found = snapshot.resolve(world, text)
        if found is not None:
            return _from_snapshot(world, found)
    return from_agent(world, _agent(world, text))


def _agent(world: World, text: str) -> Agent:
    from mngr.ops.look.listing import agents, one

    try:
        parse_address(text)
        return one(agents(world), text)
    except Ambiguous:
        raise
    except MngrError:
        raise UsageError(
            f"--from: {text!r} is not a directory, an agent, a snapshot or a git URL"
        ) from None


def directory(host: Host, path: str, *, status: bool = False) -> Source:
    """Return a directory of this machine as a source."""
    repo = Repo(run=transport.source_run(host), path=path)
    look = (lambda: _uncommitted(repo)) if status else (lambda: None)
    checkout, changes = spawn.both(lambda: git.checkout(repo), look)
    if checkout is None:
        return Source(path=path, repo=repo, folder=path)
    top = checkout.top
    subdir = os.path.relpath(os.path.realpath(path), os.path.realpath(top))
    return Source(
        path=top, repo=repo.replace(path=top), checkout=checkout, folder=path,
        changes=changes, subdir="" if subdir == "." or subdir.startswith("..") else subdir,
    )  # fmt: skip


def _uncommitted(repo: Repo) -> list[StatusLine] | None:
    try:
        return git.uncommitted(repo)
    except MngrError:
        return None  # it may not be a repository


def is_other(host: Host, text: str, source: str) -> bool:
    """Return whether `--from` names another source than the record; default: the current one."""
    if ":" in text and not os.path.isdir(text):
        return exchange.anonymous(text) != source
    if not os.path.isdir(text) or os.path.realpath(text) == os.path.realpath(os.curdir):
        return False
    found = directory(host, os.path.abspath(text))
    return source not in (found.path, found.folder)


def _is_bare(path: str) -> bool:
    parts = ("HEAD", "objects", "refs")
    if not all(os.path.exists(os.path.join(path, part)) for part in parts):
        return False
    bare = Bare(run=spawn.run, path=path).ask("rev-parse", "--is-bare-repository")
    return bare == "true" and os.path.basename(path) != ".git"


def from_url(world: World, url: str) -> Source:
    """Return an updated mirror on this machine, because the credentials are here."""
    asked = time.time()
    branch, commit = exchange.remote_head(spawn.run, url)
    if not commit:
        raise UsageError(f"--from: the repository {exchange.anonymous(url)} has no commits yet")
    shown = exchange.anonymous(url)
    path = mirror.mirror_path(world.home, shown)
    repo = Bare(run=spawn.run, path=path)
    with Lock(world.home, "mirror", path):
        exchange.make_mirror(spawn.run, path, world.home, commit)
        if _fetched(path) < asked:  # else another process has fetched
            _refresh(repo, url)
    top = Checkout(top=shown, common_dir=path, head=commit, branch=branch)
    return Source(path=shown, repo=repo, checkout=top, bare=True)


def _refresh(repo: Repo, url: str) -> None:
    refspecs = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
    done = exchange.fetch(repo, url, refspecs)
    done.raise_if_failed(f"{exchange.anonymous(url)} could not be fetched")


def _fetched(path: str) -> float:
    try:
        return os.stat(os.path.join(path, "FETCH_HEAD")).st_mtime
    except OSError:
        return 0.0


def from_agent(world: World, agent: Agent) -> Source:
    """Return its commits and uncommitted work; for a plain copy, its files."""
    from mngr.ops.work import ends

    record = agent.record
    theirs = transport.theirs(agent.host, record)
    standing = git.checkout(theirs)
    if standing is None or standing.top != record.work_dir or not standing.head:
        return Source(
            path=transport.origin(record),
            repo=theirs,
            folder=record.work_dir,
            folder_host=agent.host,
        )
    home = ends.home_repository(world, agent)
    tip = ends.fetch_tip(world, agent, home.repo)
    return Source(
        path=transport.origin(record), repo=home.repo, bare=isinstance(home.repo, Bare),
        carried=theirs,
        checkout=Checkout(top=home.repo.path, common_dir=home.folder, head=tip, branch=""),
        subdir=record.cwd, folder=record.work_dir, folder_host=agent.host,
    )  # fmt: skip


def _from_snapshot(world: World, found: Snapshot) -> Source:
    """Return the state of a snapshot: its parent as HEAD, the rest as uncommitted changes."""
    from mngr.ops.look import listing
    from mngr.ops.work import ends

    agent = listing.one(listing.agents(world), found.agent_id)
    home = ends.home_repository(world, agent)
    ends.fetch_ref(world, agent, home.repo, found.ref, found.ref)
    return Source(
        path=transport.origin(agent.record), repo=home.repo, bare=isinstance(home.repo, Bare),
        overlay=found.commit, subdir=agent.record.cwd,
        checkout=Checkout(top=home.repo.path, common_dir=home.folder, head=found.parent, branch=""),
    )  # fmt: skip
