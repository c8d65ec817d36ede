"""Pull an agent's commits into its source repository, and push commits to an agent.

A pull checks nothing out and moves no HEAD; a push is a fast-forward. Concurrent changes are
handled by git's ref locks: a ref moves only from the value that was read.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError, Refused, UsageError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.repository import Repo
from mngr.hosts import spawn
from mngr.locks import Lock
from mngr.model.struct import Struct
from mngr.ops.look.listing import Agent
from mngr.ops.steps import step
from mngr.ops.work import mirror, transport
from mngr.ops.work.ends import FETCHED, Ends, fetch_ref
from mngr.ops.work.risk import summary
from mngr.ops.world import World


class Pulled(Struct):
    """The result of a pull, or of a dry run."""

    branch: str
    tip: str
    repository: str
    commits: int = 0
    """The number of fetched commits."""
    there: bool = False
    """Whether the branch already had all commits."""
    replaced: str = ""
    """The ref that keeps the tip that --force replaced."""
    uncommitted: int = 0
    """The number of changed files in the work directory, which are not pulled."""
    elsewhere: str = ""
    """The commit of the agent's HEAD, if its branch does not have it."""


def branch_of(agent: Agent) -> str:
    """Return the name under which an agent's commits are pulled."""
    return agent.record.branch or f"mngr/{agent.name}"


def pull(
    world: World, between: Ends, name: str, *, force: bool = False, dry_run: bool = False
) -> Pulled:
    """Fetch the agent's branch into the branch `name`, whose commit is known."""
    if name != branch_of(between.agent) and not git.valid_branch(between.home, name):
        raise UsageError(f"{name!r} is not a valid branch name")
    ref, tip = _offered(between)
    pulled = Pulled(branch=name, tip=tip, repository=between.folder)
    old = between.known

    def update() -> Pulled:
        if old == tip:
            return pulled.replace(there=True)
        if dry_run:
            return _foreseen(between, pulled, old, force)
        return _fetched(world, between, pulled, ref, old, force)

    def count() -> int | None:
        try:
            return git.count_changes(between.work)
        except MngrError:  # it must not end the transfer, so it is reported after it
            return None

    done, changed = spawn.both(update, count)
    done = _annotated(between, done)
    changed = git.count_changes(between.work) if changed is None else changed
    return done.replace(uncommitted=changed or 0)


def _offered(between: Ends) -> tuple[str, str]:
    """Return the agent's own branch and its tip, or HEAD if it has no such branch."""
    branch, standing = between.agent.record.branch, between.standing
    if branch and branch == standing.branch:
        return f"refs/heads/{branch}", standing.head
    tip = git.commit_of(between.work, f"refs/heads/{branch}") if branch else None
    return (f"refs/heads/{branch}", tip) if tip else ("HEAD", standing.head)


def _fetched(
    world: World, between: Ends, pulled: Pulled, ref: str, old: str, force: bool
) -> Pulled:
    target = f"refs/heads/{pulled.branch}"
    # One git call fetches and moves the ref; git itself refuses diverged or checked-out branches.
    into = transport.through_door(world.home, between.home)
    done = exchange.fetch_theirs(into, between.way, [f"{ref}:{target}"])
    step("fetched")
    kept = ""
    if done.code:
        settled = _settled(between, pulled)
        if settled is not None:
            return settled
        if not force:
            raise _refusal(between, pulled, old, done.complaint)
        kept = _replace(world, between, pulled, ref)
    new = exchange.new_commits(between.home, target, old or between.agent.record.base_commit)
    tip = new[0] if new else git.commit_of(between.home, target)
    if tip is None:
        raise MngrError(f"the branch {pulled.branch} could not be fetched: {done.complaint}")
    return pulled.replace(tip=tip, commits=len(new), replaced=kept)


def _settled(between: Ends, pulled: Pulled) -> Pulled | None:
    """Return the result if the branch has the commit by now: another process pulled it."""
    home = between.home
    now = git.commit_of(home, f"refs/heads/{pulled.branch}")
    if now is None or not exchange.has_commit(home, pulled.tip):
        return None
    contained = exchange.is_ancestor(home, pulled.tip, now)
    return pulled.replace(there=True, tip=now) if contained else None


def _refusal(between: Ends, pulled: Pulled, old: str, complaint: str) -> MngrError:
    holder = git.worktree_of_branch(between.home, pulled.branch)
    if holder:
        return Refused(
            f"the branch {pulled.branch} is checked out in {holder}",
            "check out another branch there, or use --branch NAME",
        )
    if old and exchange.has_commit(between.home, pulled.tip):
        mine = exchange.count(between.home, old, pulled.tip)
        commits = "1 commit" if mine == 1 else f"{mine} commits"
        return Refused(
            f"the branch {pulled.branch} has {commits} that {between.agent.name} does not have",
            "use --branch NAME, or --force to replace it and keep the old tip",
        )
    return MngrError(
        f"{pulled.branch} could not be pulled: {complaint}",
        "use --branch NAME to fetch into another branch",
    )


def _replace(world: World, between: Ends, pulled: Pulled, ref: str) -> str:
    """Move a diverged branch after keeping its old tip under a numbered ref."""
    home, target = between.home, f"refs/heads/{pulled.branch}"
    fetch_ref(world, between.agent, home, ref, FETCHED + between.agent.id)
    with Lock(world.home, "repo", between.folder):
        holder = git.worktree_of_branch(home, pulled.branch)
        if holder:
            raise _refusal(between, pulled, "", "")
        old = git.commit_of(home, target)
        kept = _keep(home, pulled.branch, old) if old else ""
        step("replaced_kept")
        new = git.commit_of(home, FETCHED + between.agent.id) or pulled.tip
        home.git("update-ref", "-m", "mngr pull --force", target, new, old or "")
    return kept


def _keep(home: Repo, branch: str, tip: str) -> str:
    """Keep the tip under NUMBER/BRANCH; with BRANCH/NUMBER, `a` would block a branch `a/1`."""
    listed = home.line("for-each-ref", "--format=%(refname)", "refs/mngr/replaced/").split("\n")
    numbers = [int(each.split("/")[3]) for each in listed if each]
    ref = f"refs/mngr/replaced/{max(numbers, default=0) + 1}/{branch}"
    home.git("update-ref", ref, tip, "")
    return ref


def _foreseen(between: Ends, pulled: Pulled, old: str, force: bool) -> Pulled:
    holder = git.worktree_of_branch(between.home, pulled.branch)
    if holder:
        raise _refusal(between, pulled, old, "")
    if old and exchange.has_commit(between.work, old):
        if exchange.is_ancestor(between.work, pulled.tip, old):
            return pulled.replace(there=True, tip=old)
        if not exchange.is_ancestor(between.work, old, pulled.tip) and not force:
            raise _refusal(between, pulled, old, "it has diverged")
        return pulled.replace(commits=exchange.count(between.work, pulled.tip, old))
    if old and not force:
        raise _refusal(between, pulled, old, "it has diverged")
    base = between.agent.record.base_commit
    return pulled.replace(
        commits=exchange.count(between.work, pulled.tip, *([base] if base else []))
    )


def _annotated(between: Ends, pulled: Pulled) -> Pulled:
    """Return the result with the commit of HEAD, if it was not pulled."""
    standing, elsewhere = between.standing, ""
    if standing.head != pulled.tip and not exchange.is_ancestor(
        between.work, standing.head, pulled.tip
    ):
        elsewhere = standing.branch or standing.head[:12]
    return pulled.replace(elsewhere=elsewhere)


# push


class Pushed(Struct):
    """The result of a push, or of a dry run."""

    branch: str
    tip: str
    commits: int


def push(world: World, between: Ends, *, rev: str = "HEAD", dry_run: bool = False) -> Pushed:
    """Fast-forward the branch that the agent has checked out to a commit."""
    commit = git.commit_of(between.home, rev)
    if commit is None:
        raise UsageError(f"{rev!r} is not a commit in {between.home.path}")
    where, head = between.standing.branch, between.standing.head
    pushed = Pushed(branch=where, tip=commit, commits=0)
    if exchange.has_commit(between.work, commit) and exchange.is_ancestor(
        between.work, commit, head
    ):
        return pushed.replace(tip=head)
    _refuse_diverged(between, commit)
    if dry_run:
        return pushed.replace(commits=exchange.count(between.home, commit, head))
    if not between.shared:
        _send(world, between, commit)
    step("objects_sent")
    _forward(between, commit)
    return pushed.replace(commits=exchange.count(between.work, commit, head))


def deliver(world: World, between: Ends, commit: str) -> None:
    """Send the commit's objects to the agent; its branch and files are unchanged."""
    if not between.shared and not exchange.has_commit(between.work, commit):
        _send(world, between, commit)


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
