"""Work directories: where an agent's files come from, and what of them is at risk."""

from __future__ import annotations

import os

from mngr import git
from mngr.errors import MngrError, Refused, Taken, UsageError
from mngr.git import Repo
from mngr.locks import Lock
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.git import Checkout
    from mngr.hosts.base import Host

TRANSFERS = {
    "git-worktree": "git-worktree",
    "worktree": "git-worktree",
    "rsync": "rsync",
    "copy": "rsync",
    "none": "none",
}


class Plan(Struct):
    """What will be made, decided before anything is."""

    transfer: str
    source: str
    work_dir: str
    made_work_dir: bool
    repository: str = ""
    """The git common directory, whose lock guards refs and worktrees."""
    branch: str = ""
    made_branch: bool = False
    base_commit: str = ""
    include_dirty: bool = False
    explicit_branch: bool = False


def plan(
    host: Host,
    *,
    source: str,
    transfer: str,
    branch: str,
    name: str,
    work_dir: str,
    include_dirty: bool,
) -> Plan:
    """Look at the source and choose; refuses what would surprise or lose something."""
    if not os.path.isdir(source):
        raise UsageError(f"--from {source!r} is not a directory")
    repo = Repo(run=host.run, path=source)
    checkout = git.checkout(repo)
    mode = _mode(transfer, checkout, source)
    if mode == "git-worktree":
        assert checkout is not None
        return _plan_worktree(repo, checkout, branch, name, work_dir, include_dirty)
    if branch:
        raise UsageError(f"--branch needs --transfer git-worktree, not {mode}")
    commit = checkout.head if checkout else ""
    if mode == "none":
        here = checkout.branch if checkout else ""
        return Plan(
            transfer=mode, source=source, work_dir=source, made_work_dir=False,
            branch=here, base_commit=commit,
        )  # fmt: skip
    _refuse_huge_copy(host, source)
    return Plan(
        transfer=mode, source=source, work_dir=work_dir, made_work_dir=True, base_commit=commit
    )


def _mode(transfer: str, checkout: Checkout | None, source: str) -> str:
    if transfer and transfer not in TRANSFERS:
        raise UsageError(f"unknown transfer {transfer!r}", f"choose from {', '.join(TRANSFERS)}")
    mode = TRANSFERS[transfer] if transfer else ("git-worktree" if checkout else "rsync")
    if mode != "git-worktree":
        return mode
    if checkout is None:
        raise UsageError(f"{source} is not in a git repository", "use --transfer rsync or none")
    if not checkout.head:
        raise UsageError(
            f"the repository {checkout.top} has no commits yet",
            "commit something first, or use --transfer rsync or none",
        )
    return mode


def _refuse_huge_copy(host: Host, source: str) -> None:
    """Copying a home or the root is never what was meant."""
    real = os.path.realpath(source)
    homes = {os.path.realpath(os.path.expanduser("~")), "/"}
    inside = os.path.realpath(host.home)
    if real in homes or inside == real or inside.startswith(real.rstrip("/") + "/"):
        raise Refused(
            f"{source} is too much to copy: it is your home, the root, or holds mngr's own files",
            "run mngr in a project, or use --transfer none to work in place",
        )


def _plan_worktree(
    repo: Repo, checkout: Checkout, branch: str, name: str, work_dir: str, include_dirty: bool
) -> Plan:
    base, new, explicit = parse_branch(branch, name)
    if not include_dirty:
        _refuse_dirty(repo)
    commit = git.commit_of(repo, base) if base else checkout.head
    if commit is None:
        raise UsageError(f"--branch: {base!r} is not a commit or branch in {checkout.top}")
    if include_dirty and commit != checkout.head:
        raise UsageError(
            "--include-dirty needs the current commit as base", "drop BASE in --branch"
        )
    if not new and not git.branch_exists(repo, base):
        raise UsageError(
            f"--branch: {base!r} is not a local branch", f"to start a new one: --branch {base}:NEW"
        )
    if new and not git.valid_branch(repo, new):
        raise UsageError(f"--branch: {new!r} is not a valid branch name")
    return Plan(
        transfer="git-worktree",
        source=checkout.top,
        work_dir=work_dir,
        made_work_dir=True,
        repository=checkout.common_dir,
        branch=new or base,
        made_branch=bool(new),
        base_commit=commit,
        include_dirty=include_dirty,
        explicit_branch=explicit,
    )


def parse_branch(text: str, name: str) -> tuple[str, str, bool]:
    """`[BASE][:NEW]` -> base, new branch, and whether NEW was spelled out. `*` is the name."""
    base, colon, new = text.partition(":")
    if text and not colon:
        return base, "", True
    return base, (new or "mngr/*").replace("*", name), bool(new) and "*" not in new


def _refuse_dirty(repo: Repo) -> None:
    dirty = git.changes(repo)
    if dirty:
        raise Refused(
            f"{repo.path} has uncommitted changes: {summary(list(map(str, dirty)))}",
            "commit them, or carry them along with --include-dirty",
        )


def summary(lines: list[str], most: int = 5) -> str:
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(line.strip() for line in lines[:most]) + more


def make(host: Host, controller_home: str, plan: Plan) -> Plan:
    """Create what was planned; the plan comes back with the branch that was really made."""
    if plan.transfer == "git-worktree":
        return _make_worktree(host, controller_home, plan)
    if plan.transfer == "rsync":
        _copy(host, plan)
    return plan


def _make_worktree(host: Host, controller_home: str, plan: Plan) -> Plan:
    repo = Repo(run=host.run, path=plan.source)
    # Ref and worktree updates race between processes; launches need not wait for each other.
    with Lock(controller_home, "repo", plan.repository):
        branch = _free_branch(repo, plan) if plan.made_branch else plan.branch
        if not plan.made_branch and (holder := git.worktree_of_branch(repo, branch)):
            raise Taken(f"the branch {branch!r} is checked out in {holder}")
        git.add_worktree(
            repo,
            plan.work_dir,
            commit=plan.base_commit,
            new_branch=branch if plan.made_branch else "",
            branch=branch,
        )
    if plan.include_dirty:
        carry_changes(host, repo, plan.work_dir)
    return plan.replace(branch=branch)


def _free_branch(repo: Repo, plan: Plan) -> str:
    """A destroyed agent's branch may still be there: then a suffix, unless it was spelled out."""
    _refuse_shadowed(repo, plan.branch)
    if not git.branch_exists(repo, plan.branch):
        return plan.branch
    if plan.explicit_branch:
        raise Taken(
            f"the branch {plan.branch!r} exists already",
            f"use --branch {plan.branch} to work on it, or choose another name",
        )
    for number in range(2, 10_000):
        if not git.branch_exists(repo, f"{plan.branch}-{number}"):
            return f"{plan.branch}-{number}"
    raise Taken(f"the branch {plan.branch!r} exists already, with every suffix tried")


def _refuse_shadowed(repo: Repo, branch: str) -> None:
    """git cannot hold both `mngr` and `mngr/x`."""
    parts = branch.split("/")
    for end in range(1, len(parts)):
        prefix = "/".join(parts[:end])
        if git.branch_exists(repo, prefix):
            raise Taken(
                f"a branch called {prefix!r} makes {branch!r} impossible",
                f"choose another with --branch :{'-'.join(parts)}",
            )


def carry_changes(host: Host, source: Repo, work_dir: str) -> None:
    """Make the new tree differ from HEAD exactly as the old one does."""
    target = Repo(run=host.run, path=work_dir)
    patch = source.git("diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "HEAD")
    if patch:
        target.git("apply", "--binary", "--whitespace=nowarn", "-", input=patch)
    untracked = source.git("ls-files", "--others", "--exclude-standard", "-z")
    if untracked:
        _copy_listed(host, source.line("rev-parse", "--show-toplevel"), work_dir, untracked)


def _copy_listed(host: Host, source: str, target: str, listed: bytes) -> None:
    script = 'cd "$1" && tar -cf - --null -T - | tar -xpf - -C "$2"'
    done = host.run(["sh", "-c", script, "mngr", source, target], input=listed, timeout=600)
    if done.code:
        raise MngrError(f"untracked files could not be copied: {done.complaint}")


def _copy(host: Host, plan: Plan) -> None:
    """A whole directory, every file mode and link kept; shares blocks where the disk can."""
    reflink = 'cp -a --reflink=auto "$1/." "$2/" 2> /dev/null'
    script = f'mkdir -p "$2" && {{ {reflink} || cp -pPR "$1/." "$2/"; }}'
    done = host.run(["sh", "-c", script, "mngr", plan.source, plan.work_dir], timeout=3600)
    if done.code:
        raise MngrError(f"{plan.source} could not be copied: {done.complaint}")


class Risk(Struct):
    """Work that destroying an agent for good would lose."""

    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.commits)

    def __str__(self) -> str:
        parts = []
        if self.files:
            parts.append(f"uncommitted: {summary(list(self.files))}")
        if self.commits:
            parts.append(f"commits on no other branch: {summary(list(self.commits), 3)}")
        return "; ".join(parts)


def at_risk(host: Host, work_dir: str, transfer: str, *, losing_branch: str = "") -> Risk:
    """Files that differ from HEAD, untracked files, and commits no surviving ref reaches."""
    repo = Repo(run=host.run, path=work_dir)
    if transfer != "git-worktree" or git.checkout(repo) is None:
        # A copy, or a worktree whose repository is gone: there is nothing to compare it with.
        return _whole(host, work_dir)
    commits = git.unreachable_commits(
        repo, "HEAD", without=f"refs/heads/{losing_branch}" if losing_branch else ""
    )
    return Risk(files=tuple(map(str, git.changes(repo))), commits=tuple(commits))


def _whole(host: Host, work_dir: str) -> Risk:
    """All files count, in one line."""
    done = host.run(
        ["sh", "-c", 'find "$1" -type f | head -n 1000 | wc -l', "mngr", work_dir], timeout=120
    )
    count = int(done.stdout.strip() or 0)
    return (
        Risk(files=(f"{count}{'+' if count == 1000 else ''} files that exist nowhere else",))
        if count
        else Risk()
    )
