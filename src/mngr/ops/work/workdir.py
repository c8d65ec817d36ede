"""Plan and create work directories."""

from __future__ import annotations

import os

from mngr.errors import Refused, Taken, UsageError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.repository import Repo
from mngr.hosts import spawn
from mngr.locks import Lock
from mngr.model.records import work_dir
from mngr.model.struct import Struct
from mngr.ops.work import copying, mirror, transport
from mngr.ops.work.risk import summary
from mngr.ops.work.sources import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.git.repository import Checkout
    from mngr.hosts.base import Host
    from mngr.ops.lifecycle.request import CreateRequest

TRANSFERS = {
    "git-worktree": "git-worktree",
    "worktree": "git-worktree",
    "git-mirror": "git-mirror",
    "mirror": "git-mirror",
    "rsync": "rsync",
    "copy": "rsync",
    "none": "none",
}


class Plan(Struct):
    """A plan of what will be created."""

    transfer: str
    source: str
    work_dir: str = ""
    made_work_dir: bool
    repository: str = ""
    """The git common directory, whose lock guards refs and worktrees."""
    branch: str = ""
    made_branch: bool = False
    base_commit: str = ""
    include_dirty: bool = False
    explicit_branch: bool = False
    agent_id: str = ""
    origin: Source
    remarks: tuple[str, ...] = ()
    """What could not be copied, known once the work directory exists."""


def plan(host: Host, request: CreateRequest, origin: Source, name: str, agent_id: str) -> Plan:
    """Inspect the source and return a plan; raise if it would surprise the user or lose work."""
    mode = _mode(host, request.transfer, origin)
    place = work_dir(host.home, name, agent_id)
    if mode in ("git-worktree", "git-mirror"):
        assert origin.checkout is not None
        dirty = request.include_dirty or request.committed_only
        if not (dirty or origin.carried or origin.overlay or origin.bare):
            _refuse_dirty(origin)
        made = _plan_branch(origin, origin.checkout, request, name)
        return made.replace(transfer=mode, work_dir=place, agent_id=agent_id)
    if request.branch:
        raise UsageError(f"--branch requires --transfer git-worktree or git-mirror, not {mode}")
    commit, here = (origin.checkout.head, origin.checkout.branch) if origin.checkout else ("", "")
    if mode == "none":
        _refuse_elsewhere(host, origin)
        return Plan(
            transfer=mode, source=origin.folder, work_dir=origin.folder, made_work_dir=False,
            branch=here, base_commit=commit, origin=origin,
        )  # fmt: skip
    _refuse_huge_copy(host, origin.folder)
    _refuse_linked(origin)
    return Plan(
        transfer=mode, source=origin.path if origin.folder_host else origin.folder,
        work_dir=place, made_work_dir=True, base_commit=commit, origin=origin,
    )  # fmt: skip


def _mode(host: Host, transfer: str, origin: Source) -> str:
    if transfer and transfer not in TRANSFERS:
        raise UsageError(f"unknown transfer {transfer!r}", f"choose from {', '.join(TRANSFERS)}")
    clone = origin.bare or not host.capabilities.shares_files
    default = ("git-mirror" if clone else "git-worktree") if origin.checkout else "rsync"
    mode = TRANSFERS[transfer] if transfer else default
    if mode == "git-worktree" and clone and origin.checkout:
        why = "has no work tree" if origin.bare else f"is not on {host.ref.name}"
        raise UsageError(f"{origin.path} {why}", "use --transfer git-mirror")
    if mode in ("rsync", "none") and not origin.folder:
        raise UsageError(f"--transfer {mode} requires a directory, not {origin.path}")
    if mode in ("rsync", "none"):
        return mode
    if origin.checkout is None:
        raise UsageError(
            f"{origin.folder} is not in a git repository", "use --transfer rsync or none"
        )
    if not origin.checkout.head:
        raise UsageError(
            f"the repository {origin.checkout.top} has no commits yet",
            "commit first, or use --transfer rsync or none",
        )
    return mode


def _refuse_elsewhere(host: Host, origin: Source) -> None:
    owner = origin.folder_host
    if (owner is None and not host.capabilities.shares_files) or (owner and owner.ref != host.ref):
        raise UsageError(f"{origin.folder} is not on {host.ref.name}", "leave out --transfer none")


def _refuse_huge_copy(host: Host, source: str) -> None:
    """Raise if the source is a home directory or the root."""
    real = os.path.realpath(source)
    homes = {os.path.realpath(os.path.expanduser("~")), "/"}
    inside = os.path.realpath(host.home)
    if real in homes or inside == real or inside.startswith(real.rstrip("/") + "/"):
        raise Refused(
            f"{source} is too large to copy: it is your home, /, or contains mngr's own files",
            "run mngr in a project, or use --transfer none to work in place",
        )


def _refuse_linked(origin: Source) -> None:
    """Raise for a linked worktree: a copied `.git` file would still name the original's HEAD."""
    if origin.repo.run(["test", "-f", os.path.join(origin.folder, ".git")], timeout=30).code == 0:
        raise UsageError(
            f"a copy of {origin.folder}, a linked worktree, would share its HEAD",
            "use --transfer git-worktree or git-mirror",
        )


def _plan_branch(origin: Source, checkout: Checkout, request: CreateRequest, name: str) -> Plan:
    base, new, explicit = parse_branch(request.branch, name)
    repo, include_dirty = origin.repo, request.include_dirty
    commit = git.commit_of(repo, base) if base else checkout.head
    if commit is None:
        raise UsageError(f"--branch: {base!r} is not a commit or branch in {checkout.top}")
    if commit != checkout.head and not (origin.carried or origin.overlay):
        include_dirty = include_dirty and bool(git.changes(repo))
    if commit != checkout.head and (include_dirty or origin.carried or origin.overlay):
        raise UsageError(
            "uncommitted changes require the current commit as BASE", "remove BASE from --branch"
        )
    if not new and not git.branch_exists(repo, base):
        raise UsageError(
            f"--branch: {base!r} is not a local branch", f"to start a new one: --branch {base}:NEW"
        )
    if new and not git.valid_branch(repo, new):
        raise UsageError(f"--branch: {new!r} is not a valid branch name")
    return Plan(
        transfer="git-worktree",
        source=origin.path,
        made_work_dir=True,
        repository=checkout.common_dir,
        branch=new or base,
        made_branch=bool(new),
        base_commit=commit,
        include_dirty=include_dirty,
        explicit_branch=explicit,
        origin=origin,
    )


def parse_branch(text: str, name: str) -> tuple[str, str, bool]:
    """Parse `[BASE][:NEW]` into base, new branch, and whether NEW was given. `*` is the name."""
    base, colon, new = text.partition(":")
    if text and not colon:
        return base, "", True
    return base, (new or "mngr/*").replace("*", name), bool(new) and "*" not in new


def _refuse_dirty(origin: Source) -> None:
    dirty = git.uncommitted(origin.repo) if origin.changes is None else origin.changes
    if dirty:
        raise Refused(
            f"{origin.repo.path} has uncommitted changes: {summary(list(map(str, dirty)))}",
            "commit them, or copy them with --include-dirty",
        )


def make(
    host: Host,
    controller_home: str,
    plan: Plan,
    progress: Callable[[int], None] | None = None,
) -> Plan:
    """Create what was planned; return the plan with the branch that was created."""
    if plan.transfer == "rsync":
        copying.copy_tree(host, plan.origin, plan.work_dir, progress)
    if plan.transfer not in ("git-worktree", "git-mirror"):
        return plan
    if plan.transfer == "git-worktree":
        made = _make_worktree(host, controller_home, plan)
    else:
        made = _make_clone(host, controller_home, plan)
    origin = plan.origin
    if plan.include_dirty or origin.carried:
        owner = origin.folder_host
        same = owner.ref == host.ref if owner else host.capabilities.shares_files
        changed = origin.carried or origin.repo
        copying.carry_changes(host, changed, plan.work_dir, owner, same_host=same)
        made = made.replace(remarks=(*made.remarks, *copying.left_behind(changed)))
    return made


def _make_worktree(host: Host, controller_home: str, plan: Plan) -> Plan:
    # An agent's commit contains attributes of its choice, which can name the user's filters.
    stranger = plan.origin.carried or plan.origin.overlay
    run = transport.cleaned(host) if stranger else host.run
    repo = plan.origin.repo.replace(run=run)
    # Ref and worktree updates race between processes, so they are locked; launches are not.
    with Lock(controller_home, "repo", plan.repository):
        if not plan.made_branch and (holder := git.worktree_of_branch(repo, plan.branch)):
            raise Taken(f"the branch {plan.branch!r} is checked out in {holder}")
        branch = _added(repo, plan, plan.branch)
    if plan.origin.overlay:
        exchange.lay_over(Repo(run=run, path=plan.work_dir), plan.origin.overlay)
    remarks = mirror.submodules(host, controller_home, _borrowed(plan, branch))
    return plan.replace(branch=branch, remarks=tuple(remarks))


def _borrowed(plan: Plan, branch: str) -> mirror.Borrowed:
    checkout = plan.origin.checkout
    return mirror.Borrowed(
        source=plan.origin.repo.replace(run=spawn.run),
        identity=plan.repository,
        commit=plan.base_commit,
        overlay=plan.origin.overlay,
        branch=branch,
        upstream=checkout.branch if checkout else "",
        work_dir=plan.work_dir,
        agent_id=plan.agent_id,
        modules=checkout is None or checkout.modules or checkout.head != plan.base_commit,
    )


def _make_clone(host: Host, controller_home: str, plan: Plan) -> Plan:
    """Create a clone. No ref of the source changes, so nothing is locked."""
    repo = plan.origin.repo.replace(run=spawn.run)
    branch = _free_branch(repo, plan) if plan.made_branch else plan.branch
    remarks = mirror.make(host, controller_home, _borrowed(plan, branch))
    return plan.replace(branch=branch, remarks=tuple(remarks))


def _added(repo: Repo, plan: Plan, branch: str) -> str:
    """Add the worktree and return its branch; checking first would cost two more processes."""
    new, where = plan.made_branch, (plan.repository, plan.work_dir)
    done = git.add_worktree(repo, *where, branch, plan.base_commit, new=new)
    if not done.code:
        return branch
    if new and branch == plan.branch and (free := _free_branch(repo, plan)) != branch:
        return _added(repo, plan, free)
    raise git.GitError(f"no worktree could be added to {repo.path}: {git.complaint(done)}")


def _free_branch(repo: Repo, plan: Plan) -> str:
    """Return a free branch name: with a suffix if it exists, unless it was given explicitly."""
    _refuse_shadowed(repo, plan.branch)
    if not git.branch_exists(repo, plan.branch):
        return plan.branch
    if plan.explicit_branch:
        raise Taken(
            f"the branch {plan.branch!r} already exists",
            f"use --branch {plan.branch} to work on it, or choose another name",
        )
    for number in range(2, 10_000):
        if not git.branch_exists(repo, f"{plan.branch}-{number}"):
            return f"{plan.branch}-{number}"
    raise Taken(f"the branch {plan.branch!r} already exists, with every suffix tried")


def _refuse_shadowed(repo: Repo, branch: str) -> None:
    """Raise if git cannot create the branch, such as `mngr/x` where `mngr` exists."""
    parts = branch.split("/")
    for end in range(1, len(parts)):
        prefix = "/".join(parts[:end])
        if git.branch_exists(repo, prefix):
            raise Taken(
                f"a branch called {prefix!r} prevents creating {branch!r}",
                f"choose another with --branch :{'-'.join(parts)}",
            )
