"""Fetch commits of an agent into the repository its work came from.

Nothing is checked out and no HEAD moves. Concurrent changes are handled by git's ref locks: a ref
moves only from the value that was read.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError, NotFound, Refused, UsageError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.exchange import Bare
from mngr.git.repository import Repo
from mngr.hosts import spawn
from mngr.locks import Lock
from mngr.model.struct import Struct
from mngr.ops.steps import step
from mngr.ops.work import mirror, transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.git.exchange import Way
    from mngr.git.repository import Checkout
    from mngr.git.stranger import Stranger
    from mngr.ops.look.listing import Agent
    from mngr.ops.world import World

FETCHED = "refs/mngr/fetched/"


class Pulled(Struct):
    """The result of a pull, or of a dry run."""

    branch: str
    tip: str
    repository: str
    commits: int = 0
    """How many came."""
    there: bool = False
    """Nothing had to move: the branch has it all."""
    replaced: str = ""
    """The ref that keeps what --force replaced."""
    uncommitted: int = 0
    """Changed files in the work directory, which no pull of commits brings."""
    elsewhere: str = ""
    """Where the agent's HEAD stands, if its branch lacks that."""


class Home(Struct):
    """A repository on this machine, identified by its common directory."""

    repo: Repo
    folder: str


class Ends(Struct):
    """Both ends of a transfer."""

    agent: Agent
    work: Stranger
    standing: Checkout
    home: Repo
    folder: str
    """The common directory of `home`."""

    @property
    def shared(self) -> bool:
        """Return whether both ends are one repository, as with a worktree."""
        return self.agent.host.capabilities.shares_files and self.folder == self.standing.common_dir

    @property
    def way(self) -> Way:
        return transport.to_agent(self.agent.host, self.work)


def ends(world: World, agent: Agent, home: Home | None = None) -> Ends:
    record = agent.record
    work = transport.theirs(agent.host, record)
    standing = git.checkout(work)
    if standing is None or not standing.head:
        why = "has no commits" if standing else "is not a git repository, or gone"
        raise UsageError(
            f"the work directory of {agent.name} {why}", "name a PATH in it to copy files"
        )
    home = home or home_repository(world, agent)
    return Ends(agent=agent, work=work, standing=standing, home=home.repo, folder=home.folder)


def home_repository(world: World, agent: Agent) -> Home:
    """Return the target of an agent's commits: its source, or the mirror of a URL."""
    source = agent.record.source
    if os.path.isdir(source):
        repo = transport.here(source)
        checkout = git.checkout(repo)
        if checkout is not None:
            return Home(repo=repo, folder=checkout.common_dir)
        bare = Bare(run=spawn.run, path=source)
        if bare.ask("rev-parse", "--is-bare-repository") == "true":
            return Home(repo=bare, folder=source)
        raise UsageError(
            f"{source}, where {agent.name} came from, is not a git repository",
            "name a PATH in its work directory to copy files",
        )
    path = mirror.mirror_path(world.home, source)
    if os.path.isdir(path):
        return Home(repo=Bare(run=spawn.run, path=path), folder=path)
    raise NotFound(f"the repository {source}, where {agent.name} came from, is not on this machine")


def user_repository(world: World, agent: Agent, cwd: str) -> Home:
    """Return the target of a pull; for a URL, the user's current clone if it is of that URL."""
    if os.path.isdir(agent.record.source):
        return home_repository(world, agent)
    repo, base = transport.here(cwd), agent.record.base_commit
    checkout = git.checkout(repo)
    if checkout is None or not exchange.has_commit(repo, base):
        raise UsageError(
            f"{agent.name} came from {agent.record.source}", "run this command in a clone of it"
        )
    return Home(repo=repo, folder=checkout.common_dir)


# pull


def pull(
    world: World,
    agent: Agent,
    home: Home,
    *,
    branch: str = "",
    force: bool = False,
    dry_run: bool = False,
) -> Pulled:
    """Fetch the agent's branch into the repository, under its own name or another."""
    between = ends(world, agent, home)
    name = branch or agent.record.branch or f"mngr/{agent.name}"
    if branch and not git.valid_branch(home.repo, name):
        raise UsageError(f"{name!r} is not a valid branch name")
    ref, tip = _offered(between)
    pulled = Pulled(branch=name, tip=tip, repository=between.folder)
    old = git.commit_of(home.repo, f"refs/heads/{name}") or ""
    if old == tip:
        done = pulled.replace(there=True)
    elif dry_run:
        done = _foreseen(between, pulled, old, force)
    else:
        done = _fetched(world, between, pulled, ref, old, force)
    return _annotated(between, done)


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
        raise MngrError(f"{pulled.branch} did not arrive: {done.complaint}")
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
        return Refused(
            f"the branch {pulled.branch} has {mine} commits that are not in {between.agent.name}",
            "use --branch NAME, or --force to replace it and keep the old tip",
        )
    return MngrError(f"{pulled.branch} could not be pulled: {complaint}", "see --branch NAME")


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
    """Add remarks about everything that was not included."""
    standing, elsewhere = between.standing, ""
    if standing.head != pulled.tip and not exchange.is_ancestor(
        between.work, standing.head, pulled.tip
    ):
        elsewhere = standing.branch or standing.head[:12]
    changed = git.count_changes(between.work) or 0
    return pulled.replace(uncommitted=changed, elsewhere=elsewhere)


def fetch_ref(world: World, agent: Agent, repo: Repo, remote: str, local: str) -> None:
    """Fetch one ref of the agent's repository, replacing the local ref."""
    way = transport.to_agent(agent.host, transport.theirs(agent.host, agent.record))
    into = transport.through_door(world.home, repo)
    done = exchange.fetch_theirs(into, way, [f"+{remote}:{local}"])
    if done.code:
        raise MngrError(f"{remote} of {agent.name} could not be fetched: {done.complaint}")


def bring(world: World, agent: Agent, home: Home, commit: str, ref: str) -> None:
    """Fetch exactly that commit and keep it under `ref`; no branch moves."""
    between = ends(world, agent, home)
    if between.shared:
        home.repo.git("update-ref", ref, commit)
    else:
        fetch_ref(world, agent, home.repo, commit, ref)


def fetch_tip(world: World, agent: Agent, repo: Repo) -> str:
    """Fetch and return the agent's HEAD; its objects are kept in this repository."""
    folder = repo.line("rev-parse", "--path-format=absolute", "--git-common-dir")
    between = ends(world, agent, Home(repo=repo, folder=folder))
    if between.shared:
        return between.standing.head
    ref = FETCHED + agent.id
    fetch_ref(world, agent, repo, "HEAD", ref)
    return git.commit_of(repo, ref) or between.standing.head
