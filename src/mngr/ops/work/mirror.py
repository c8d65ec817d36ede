"""Maintain one bare mirror per repository and host; agents are clones that share its objects.

A hundred agents cost one upload: mngr first checks whether the mirror has the commit. The objects
of a clone are pinned in the mirror before it is created, and the mirror never prunes.
"""

from __future__ import annotations

import os
import zlib

from mngr.errors import MngrError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.exchange import Bare
from mngr.git.repository import Repo
from mngr.git.stranger import Stranger
from mngr.git.stranger_scripts import CLEAN
from mngr.hosts.base import Host, is_here
from mngr.locks import Lock
from mngr.model.quoting import join
from mngr.model.struct import Struct
from mngr.ops.steps import step
from mngr.ops.work import transport

UNPIN = r"""
for mirror in "$1"/mirrors/*.git; do
  [ -d "$mirror" ] || continue
  set -- "$1" "$2" "refs/mngr/*/$2" "refs/mngr/*/$2/*"
  git --git-dir="$mirror" for-each-ref --format='delete %(refname)' "$3" "$4" |
    git -c core.hooksPath=/dev/null --git-dir="$mirror" update-ref --stdin
done
"""


class Borrowed(Struct):
    """A clone to create: its repository, commit and agent."""

    source: Repo
    """The repository, on this machine."""
    identity: str
    """Identifies the repository: its common directory, or a URL."""
    commit: str
    overlay: str = ""
    """A later commit, whose files are added as uncommitted changes."""
    branch: str
    """The branch to create; "" means a detached HEAD."""
    upstream: str = ""
    """The source's current branch, which becomes a branch of origin in the clone."""
    work_dir: str
    agent_id: str
    modules: bool = True
    """Whether the commit may have submodules."""


def mirror_path(home: str, identity: str) -> str:
    """Return a path made of a readable name and a checksum."""
    import re

    parts = [part for part in identity.rstrip("/").split("/") if part != ".git"]
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", parts[-1] if parts else "")[:60].strip(".-")
    digest = zlib.crc32(os.fsencode(identity))
    return os.path.join(home, "mirrors", f"{name.removesuffix('.git') or 'root'}-{digest:08x}.git")


def place(host: Host, identity: str) -> str:
    """Return the path of a host's mirror; the mirror of a URL is itself."""
    if is_here(host) and identity.startswith(os.path.join(host.home, "mirrors", "")):
        return identity
    return mirror_path(host.home, identity)


def make(host: Host, controller_home: str, plan: Borrowed) -> list[str]:
    """Create mirror, pin and clone, and check out; return remarks about what is missing.

    This is one round trip if the mirror has the commit and no file must exist before the check-out.
    """
    # The files may come from another agent, which chose their attributes.
    work = Repo(run=transport.cleaned(host), path=plan.work_dir)
    words = exchange.checking_out(work, plan.commit, plan.branch)
    info = _info(plan)
    then = "" if info else f"{CLEAN}clean {join(words)}"
    commit, pin = plan.overlay or plan.commit, f"refs/mngr/base/{plan.agent_id}"
    lent = exchange.Lent(
        mirror=place(host, plan.identity), work_dir=plan.work_dir, commit=commit, pin=pin,
        settings=tuple(exchange.git_settings(plan.source)),
    )  # fmt: skip
    if not lent.make(host.run, then):
        provide(
            host, controller_home, plan.source, plan.identity, commit, pin, upstream=plan.upstream
        )
        step("mirror_updated")
        lent.make(host.run, then)
    step("cloned")
    if info:
        host.put(info)
        exchange.check_out(work, plan.commit, plan.branch)
    if plan.overlay:
        exchange.lay_over(work, plan.overlay)
    return submodules(host, controller_home, plan)


def provide(
    host: Host,
    controller_home: str,
    source: Repo,
    identity: str,
    commit: str,
    pin: str,
    *,
    upstream: str = "",
) -> None:
    """Give the mirror the commit, kept by `pin`; upload only missing objects."""
    path = place(host, identity)
    mirror = Bare(run=host.run, path=path)
    if mirror.attempt("update-ref", pin, commit).code == 0:
        return  # it had the commit: update-ref refuses a missing object
    # Two uploads of the same commit would compete for bandwidth; the second finds it done.
    with Lock(controller_home, "mirror", f"{host.ref.id} {path}"):
        if mirror.attempt("update-ref", pin, commit).code:
            exchange.make_mirror(host.run, path, host.home, commit)
            step("mirror_made")
            _update(host, source, mirror, commit, pin, upstream)


def _update(host: Host, source: Repo, mirror: Repo, commit: str, pin: str, upstream: str) -> None:
    """Push the commit, its branch and the tags; only the commit is required to arrive."""
    refspecs = [f"+{commit}:{pin}", "+refs/tags/*:refs/tags/*"]
    if upstream:
        refspecs.append(f"+refs/heads/{upstream}:refs/heads/{upstream}")
    done = exchange.upload(source, transport.to_mirror(host, mirror.path), refspecs)
    if not exchange.has_commit(mirror, commit):
        transport.require_answer(host)
        raise MngrError(f"{commit[:12]} could not be sent to {host.ref.name}: {done.complaint}")


def unpin(host: Host, agent_id: str) -> None:
    """Remove the agent's pin, once its clone no longer exists."""
    host.run(["sh", "-c", UNPIN, "mngr", host.home, agent_id], timeout=60)


def _info(plan: Borrowed) -> dict[str, tuple[bytes, int]]:
    """Return the exclude rules of the source, so that the clone ignores the same files."""
    folder = plan.identity  # for a local repository, its common directory
    if not os.path.isdir(folder):
        folder = plan.source.ask("rev-parse", "--path-format=absolute", "--git-common-dir") or ""
    files = {}
    for name in ("exclude", "attributes"):
        try:
            with open(os.path.join(folder, "info", name), "rb") as file:
                content = file.read()
        except OSError:
            continue  # usually there is none
        if any(line.strip() and not line.startswith(b"#") for line in content.splitlines()):
            files[os.path.join(plan.work_dir, ".git", "info", name)] = (content, 0o644)
    return files


def submodules(host: Host, controller_home: str, plan: Borrowed) -> list[str]:
    """Clone the submodules that are checked out in the source, each through its own mirror."""
    links = exchange.gitlinks(plan.source, plan.commit) if _has_modules(plan) else {}
    remarks = []
    for path, commit in links.items():
        source = transport.here(os.path.join(plan.source.path, path))
        checkout = git.checkout(source)
        if checkout is None or checkout.top == plan.source.path:
            remarks.append(f"the submodule {path} is not initialised, as in the source")
        elif not exchange.has_commit(source, commit):
            remarks.append(f"the submodule {path} is not initialised: it lacks {commit[:12]}")
        else:
            inner = Borrowed(
                source=source, identity=checkout.common_dir, commit=commit, branch="",
                work_dir=os.path.join(plan.work_dir, path), agent_id=plan.agent_id,
            )  # fmt: skip
            remarks += make(host, controller_home, inner)
    if links:
        Repo(run=transport.cleaned(host), path=plan.work_dir).attempt("submodule", "init", "-q")
    return remarks


def _has_modules(plan: Borrowed) -> bool:
    """Return whether there is a .gitmodules; listing the tree would slow down every create."""
    return (
        plan.modules
        and plan.source.attempt("cat-file", "-e", f"{plan.commit}:.gitmodules").code == 0
    )


def inner_commits(work: Stranger, at: git.Checkout, source: str, base: str) -> list[str]:
    """Return commits in submodules that neither a mirror nor a ref of the source has."""
    if not at.modules:
        return []
    # A submodule that the agent added has no base.
    links = {**dict.fromkeys(exchange.gitlinks(work, "HEAD"), ""), **_links(work, base)}
    found = []
    for path, start in links.items():
        inner, there = work.inside(path), os.path.join(source, path)
        if (top := git.checkout(inner)) is not None and top.head:
            commits = unkept(inner, start, there) + inner_commits(inner, top, there, start)
            found += [f"{path}: {commit}" for commit in commits]
    return found


def _links(work: Stranger, base: str) -> dict[str, str]:
    return exchange.gitlinks(work, base) if base and exchange.has_commit(work, base) else {}


def unkept(work: Repo, base: str, source: str) -> list[str]:
    """Return commits that neither `base`, the mirror nor a ref of the source has."""
    commits = exchange.own_commits(work, base)
    home = transport.source(source)
    if commits and os.path.isdir(source) and home.ask("rev-parse", "--git-dir") is not None:
        kept = exchange.kept_commits(home, commits)
        commits = {full: text for full, text in commits.items() if full not in kept}
    return list(commits.values())
