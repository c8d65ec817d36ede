"""Send commits from this machine to an agent, by fast-forward only."""

from __future__ import annotations

import os

from mngr.errors import MngrError, Refused, UsageError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.model.struct import Struct
from mngr.ops.steps import step
from mngr.ops.work import mirror, pulling
from mngr.ops.work.risk import summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.ops.look.listing import Agent
    from mngr.ops.work.pulling import Ends, Home
    from mngr.ops.world import World


class Pushed(Struct):
    """The result of a push, or of a dry run."""

    branch: str
    tip: str
    commits: int
    repository: str


def push(
    world: World, agent: Agent, home: Home, *, rev: str = "HEAD", dry_run: bool = False
) -> Pushed:
    """Fast-forward the branch that the agent has checked out to a commit."""
    between = pulling.ends(world, agent, home)
    commit = git.commit_of(home.repo, rev)
    if commit is None:
        raise UsageError(f"{rev!r} is not a commit in {home.repo.path}")
    where, head = between.standing.branch, between.standing.head
    pushed = Pushed(branch=where, tip=commit, commits=0, repository=between.folder)
    if exchange.has_commit(between.work, commit) and exchange.is_ancestor(
        between.work, commit, head
    ):
        return pushed.replace(tip=head)
    _refuse_diverged(between, commit)
    if dry_run:
        return pushed.replace(commits=_ahead(between, commit))
    if not between.shared:
        _send(world, between, commit)
    step("objects_sent")
    _forward(between, commit)
    return pushed.replace(commits=exchange.count(between.work, commit, head))


def deliver(world: World, agent: Agent, home: Home, commit: str) -> None:
    """Send the commit's objects to the agent; its branch and files are unchanged."""
    between = pulling.ends(world, agent, home)
    if not between.shared and not exchange.has_commit(between.work, commit):
        _send(world, between, commit)


def _ahead(between: Ends, commit: str) -> int:
    return exchange.count(between.home, commit, between.standing.head)


def _refuse_diverged(between: Ends, commit: str) -> None:
    """Raise unless the repository has the agent's HEAD and the commit descends from it."""
    head, name = between.standing.head, between.agent.name
    home = between.home
    if exchange.has_commit(home, head) and exchange.is_ancestor(home, head, commit):
        return
    raise Refused(
        f"{name} has commits that are not in {commit[:12]}",
        f"merge them first (`mngr pull {name}`, then `git merge`), and push again",
    )


def _send(world: World, between: Ends, commit: str) -> None:
    """Send a commit, through the mirror if there is one, so many agents cost one upload."""
    agent, host = between.agent, between.agent.host
    if agent.record.transfer == "git-mirror":
        pin = f"refs/mngr/pushed/{agent.id}/{commit}"
        place = mirror.place(host, between.folder)
        if os.path.basename(place) == os.path.basename(_lender(between)):
            mirror.provide(host, world.home, between.home, between.folder, commit, pin)
            return
    done = exchange.upload(between.home, between.way, [f"+{commit}:refs/mngr/pushed/{commit}"])
    if not exchange.has_commit(between.work, commit):
        raise MngrError(f"{commit[:12]} could not be sent to {agent.name}: {done.complaint}")


def _lender(between: Ends) -> str:
    """Return the mirror whose objects a clone shares."""
    config = os.path.join(between.work.path, ".git", "config")
    return between.work.ask("config", "--file", config, "remote.origin.url") or ""


def _forward(between: Ends, commit: str) -> None:
    done = exchange.fast_forward(between.work.replace(writes=True), commit)
    if git.commit_of(between.work, "HEAD") == commit:
        return
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    blocking = [line.strip() for line in lines if line.startswith("\t")]
    if blocking:
        raise Refused(
            f"{between.agent.name} has uncommitted changes in the way: {summary(blocking)}",
            f"commit or remove them there, for instance with `mngr exec {between.agent.name}`",
        )
    raise MngrError(f"{between.agent.name} could not be fast-forwarded: {done.complaint}")
