"""The two ends of a transfer of commits: the agent's repository, and the one on this machine."""

from __future__ import annotations

import os

from mngr.errors import NotFound, UsageError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.exchange import Bare, Way
from mngr.git.repository import Checkout, Repo
from mngr.git.stranger import Stranger
from mngr.hosts import spawn
from mngr.model.struct import Struct
from mngr.ops.look.listing import Agent
from mngr.ops.work import mirror, transport
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FETCHED = "refs/mngr/fetched/"


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
    known: str = ""
    """The commit in `home` of the branch that was asked for."""

    @property
    def shared(self) -> bool:
        """Return whether both ends are one repository, as with a worktree."""
        return self.agent.host.capabilities.shares_files and self.folder == self.standing.common_dir

    @property
    def way(self) -> Way:
        return transport.to_agent(self.agent.host, self.work)


def ends(agent: Agent, home: Callable[[], Home], branch: str = "") -> Ends:
    """Return both ends, with `home` found beside the other; raise if the agent has no commits."""
    work = transport.theirs(agent.host, agent.record)

    def look() -> tuple[Home, str | None]:
        here = home()
        return here, git.commit_of(here.repo, f"refs/heads/{branch}") if branch else None

    standing, (here, known) = spawn.both(lambda: git.checkout(work), look)
    if standing is None or not standing.head:
        why = "has no commits" if standing else "is not a git repository, or gone"
        raise UsageError(
            f"the work directory of {agent.name} {why}", "name a PATH in it to copy files"
        )
    return Ends(
        agent=agent,
        work=work,
        standing=standing,
        home=here.repo,
        folder=here.folder,
        known=known or "",
    )


def home_repository(world: World, agent: Agent) -> Home:
    """Return the target of an agent's commits: its source, or the mirror of a URL."""
    source = transport.origin(agent.record)
    if os.path.isdir(source):
        repo = transport.here(source)
        checkout = git.checkout(repo)
        if checkout is not None:
            return Home(repo=repo, folder=checkout.common_dir)
        bare = Bare(run=spawn.run, path=source)
        if bare.ask("rev-parse", "--is-bare-repository") == "true":
            return Home(repo=bare, folder=source)
        raise UsageError(
            f"{source}, the source of {agent.name}, is not a git repository",
            "name a PATH in its work directory to copy files",
        )
    path = mirror.mirror_path(world.home, source)
    if os.path.isdir(path):
        return Home(repo=Bare(run=spawn.run, path=path), folder=path)
    raise NotFound(
        f"the repository {source}, the source of {agent.name}, is not on this machine",
        "name a PATH in its work directory to copy files",
    )


def user_repository(world: World, agent: Agent, cwd: str) -> Home:
    """Return the target of a pull; for a URL, the user's current clone if it is of that URL."""
    if os.path.isdir(transport.origin(agent.record)):
        return home_repository(world, agent)
    repo, base = transport.here(cwd), agent.record.base_commit
    checkout = git.checkout(repo)
    if checkout is None or not exchange.has_commit(repo, base):
        raise UsageError(
            f"{agent.name} was created from {transport.origin(agent.record)}",
            "run this command in a clone of it",
        )
    return Home(repo=repo, folder=checkout.common_dir)


def fetch_ref(world: World, agent: Agent, repo: Repo, remote: str, local: str) -> None:
    """Fetch one ref of the agent's repository, replacing the local ref."""
    way = transport.to_agent(agent.host, transport.theirs(agent.host, agent.record))
    into = transport.through_door(world.home, repo)
    done = exchange.fetch_theirs(into, way, [f"+{remote}:{local}"])
    done.raise_if_failed(f"{remote} of {agent.name} could not be fetched")


def bring(world: World, between: Ends, commit: str, ref: str) -> None:
    """Fetch exactly that commit and keep it under `ref`; no branch moves."""
    if between.shared:
        between.home.git("update-ref", ref, commit)
    else:
        fetch_ref(world, between.agent, between.home, commit, ref)


def fetch_tip(world: World, agent: Agent, repo: Repo) -> str:
    """Fetch and return the agent's HEAD; its objects are kept in this repository."""
    folder = repo.line("rev-parse", "--path-format=absolute", "--git-common-dir")
    between = ends(agent, lambda: Home(repo=repo, folder=folder))
    if between.shared:
        return between.standing.head
    ref = FETCHED + agent.id
    fetch_ref(world, agent, repo, "HEAD", ref)
    return git.commit_of(repo, ref) or between.standing.head
