"""Merge an agent's commits into the current branch of the repository here.

Conflicts are left in git's usual state. If the check fails, the merge is undone.
`refs/worktree/mngr/merging/<agent id>` holds HEAD before an unfinished merge, so that repeating the
command after a crash checks, completes or undoes that merge.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mngr.errors import MngrError, Refused
from mngr.git import repository as git
from mngr.git.repository import Checkout, GitError, Repo
from mngr.locks import Lock
from mngr.model.completed import Completed
from mngr.model.struct import Json, Struct
from mngr.ops.keep import trees
from mngr.ops.look.listing import Agent
from mngr.ops.steps import step
from mngr.ops.work import transport
from mngr.ops.work.risk import summary
from mngr.ops.world import World

RunCheck = Callable[[str], int]
"""Runs the check in a directory; its exit code."""
HOURS = 12 * 3600.0
"""Seconds that the user's hooks and merge drivers may take."""

# The user's hooks, filters and drivers run, because this merges into the user's own branch.
OWN = ("-c", "core.fsmonitor=false", "-c", "log.showSignature=false")


class Conflict(MngrError):
    """The merge has conflicts; they are left in git's usual state for the user to resolve."""


class Merged(Struct):
    """The result of merging one agent's commits."""

    name: str
    id: str
    tip: str
    before: str
    after: str
    commits: int
    """The number of merged commits; 0 if the branch already had all of them."""
    undone: str = ""
    """Why the merge was undone."""

    def to_json(self) -> dict[str, Json]:
        done = not self.undone
        return {**super().to_json(), "merged": done}


class Place(Struct):
    """The user's work tree, the target of the merge."""

    repo: Repo
    checkout: Checkout
    home: str

    def lock(self) -> Lock:
        return Lock(self.home, "repo", self.checkout.common_dir)


def place(world: World, folder: str) -> Place:
    """Return the local repository around a directory; raise if an operation is unfinished in it."""
    there = Repo(run=world.host().run, path=folder, timeout=HOURS)
    checkout = git.checkout(there)
    if checkout is None:
        bare = there.ask("rev-parse", "--is-bare-repository") == "true"
        why = "is in a bare repository, without files" if bare else "is not in a git repository"
        raise MngrError(f"{folder} {why}", "change to the repository to merge into")
    repo = there.replace(path=checkout.top, flags=OWN)
    _refuse_unfinished(repo)
    return Place(repo=repo, checkout=checkout, home=world.home)


UNFINISHED = {
    "MERGE_HEAD": ("a merge", "`git commit` completes it, `git merge --abort` drops it"),
    "CHERRY_PICK_HEAD": ("a cherry-pick", "see `git status`"),
    "REVERT_HEAD": ("a revert", "see `git status`"),
    "REBASE_HEAD": ("a rebase", "see `git status`"),
}


def _refuse_unfinished(repo: Repo) -> None:
    for ref, (what, hint) in UNFINISHED.items():
        if repo.ask("rev-parse", "-q", "--verify", ref) is not None:
            raise Refused(f"{what} is in progress in {repo.path}", hint)
    unmerged = conflicted(repo)
    if unmerged:
        raise Refused(
            f"{repo.path} has unresolved conflicts: {', '.join(unmerged[:5])}",
            "resolve them, or abort the merge with `git reset --merge`",
        )


def conflicted(repo: Repo) -> list[str]:
    raw = repo.git("diff", "--name-only", "--diff-filter=U", "-z")
    return os.fsdecode(raw).split("\0")[:-1]


def staged(repo: Repo) -> list[str]:
    raw = repo.git("diff", "--cached", "--name-only", "--no-renames", "-z")
    return os.fsdecode(raw).split("\0")[:-1]


def tip_of(world: World, agent: Agent, here: Place) -> str:
    """Return the agent's last commit, after fetching it into this repository if it is missing."""
    from mngr.ops.work import ends

    if not trees.standing(agent.host, agent.record).head:
        raise MngrError(f"{agent.name} has no commits")
    return ends.fetch_tip(world, agent, here.repo)


def left_behind(agent: Agent) -> list[str]:
    """Return the agent's uncommitted changes, which a merge does not include."""
    work = transport.theirs(agent.host, agent.record)
    return [str(change) for change in git.changes(work)]


def missing(here: Place, tip: str) -> int:
    """Return how many commits a merge would add."""
    return int(here.repo.line("rev-list", "--count", f"HEAD..{tip}"))


def merge(here: Place, agent: Agent, tip: str, *, squash: bool, check: RunCheck | None) -> Merged:
    """Merge, run the check, and undo the merge if the check fails."""
    note = f"refs/worktree/mngr/merging/{agent.id}"
    commits = missing(here, tip)
    before = _unsettled(here, agent, note, tip, squash=squash)
    if before is None and not commits:
        return unchanged(here, agent, tip, 0)
    if before is None:
        if squash or check:
            _refuse_staged(here)
        before = here.repo.line("rev-parse", "HEAD")
        here.repo.git("update-ref", note, before)
        step("merge_noted")
        try:
            with here.lock():
                _merge(here, agent, tip, squash)
        except MngrError:
            here.repo.attempt("update-ref", "-d", note)
            raise
    elif here.repo.line("rev-parse", "HEAD") == before:
        _commit_squashed(here, agent, tip)  # an interrupted squash without its commit
    after = here.repo.line("rev-parse", "HEAD")
    step("merged")
    undone = _failed(here, before, after, check) if check else ""
    here.repo.git("update-ref", "-d", note)
    step("merge_settled")
    return _merged(agent, tip, before, after, commits, undone)


def unchanged(here: Place, agent: Agent, tip: str, commits: int) -> Merged:
    head = here.repo.line("rev-parse", "HEAD")
    return _merged(agent, tip, head, head, commits)


def _merged(
    agent: Agent, tip: str, before: str, after: str, commits: int, undone: str = ""
) -> Merged:
    return Merged(
        name=agent.name,
        id=agent.id,
        tip=tip,
        before=before,
        after=before if undone else after,
        commits=commits,
        undone=undone,
    )


def _unsettled(here: Place, agent: Agent, note: str, tip: str, *, squash: bool) -> str | None:
    """Return HEAD before an interrupted merge, if nothing else was committed after that merge."""
    before = git.commit_of(here.repo, note)
    if before is None:
        return None
    head, *parents = here.repo.line("log", "-1", "--format=%H %P").split()
    if squash and head == before:
        ours = _squash_message(here)
    elif squash:
        subject = here.repo.line("log", "-1", "--format=%s")
        ours = parents == [before] and subject == _subject(agent, "Squash")
    else:
        ours = head == tip or parents == [before, tip]
    if not ours:
        here.repo.attempt("update-ref", "-d", note)
    return before if ours else None


def _squash_message(here: Place) -> bool:
    """Return whether SQUASH_MSG exists: git writes it once the index has the whole squash."""
    path = here.repo.line("rev-parse", "--path-format=absolute", "--git-path", "SQUASH_MSG")
    return here.repo.run(["test", "-s", path], timeout=30).code == 0


def _refuse_staged(here: Place) -> None:
    """Raise if changes are staged: a squash would commit them, and undoing a merge lose them."""
    found = staged(here.repo)
    if found:
        raise Refused(
            f"{here.repo.path} has staged changes: {', '.join(found[:5])}", "commit or unstage them"
        )


def _merge(here: Place, agent: Agent, tip: str, squash: bool) -> None:
    words = ["--squash"] if squash else ["--no-edit", "-m", _subject(agent, "Merge")]
    done = here.repo.attempt("merge", "-q", *words, tip)
    if done.code:
        _refuse_conflict(here, agent, squash)
        raise GitError(f"{agent.name} was not merged: {_words(done)}", "your files are untouched")
    if squash:
        step("squash_staged")
        _commit_squashed(here, agent, tip)


def _words(done: Completed) -> str:
    """Return the error in git's output and the files that it lists, without git's advice."""
    advice = ("hint:", "Aborting", "Please ")
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    files = summary([line for line in lines if line.startswith("\t")])
    said = [line.strip() for line in lines if not line.startswith(("\t", *advice))]
    words = " ".join([*said[:6], files]).strip()
    return words.removeprefix("error: ").removeprefix("fatal: ") or done.complaint


def _subject(agent: Agent, verb: str) -> str:
    branch = agent.record.branch
    return f"{verb} agent {agent.name}" + (f" ({branch})" if branch else "")


def _refuse_conflict(here: Place, agent: Agent, squash: bool) -> None:
    files = conflicted(here.repo)
    if not files:
        return
    undo = "git reset --merge" if squash else "git merge --abort"
    raise Conflict(
        f"{agent.name} conflicts with your branch in {summary(files)}",
        f"resolve, `git add` and `git commit`, or abort the merge with `{undo}`",
    )


def _commit_squashed(here: Place, agent: Agent, tip: str) -> None:
    log = here.repo.line("log", "--reverse", "--format=* %h %s", f"HEAD..{tip}")
    if not staged(here.repo):
        return  # the commits cancel each other out
    message = f"{_subject(agent, 'Squash')}\n\n{log}\n"
    here.repo.git("commit", "-q", "-F", "-", input=os.fsencode(message))


def _failed(here: Place, before: str, after: str, check: RunCheck) -> str:
    """Run the check; if it fails, undo the merge and return the reason, else return ""."""
    code = check(here.repo.path)
    if code == 0:
        return ""
    step("check_failed")
    if here.repo.line("rev-parse", "HEAD") != after:
        raise MngrError(
            f"the check failed (exit code {code}) and moved HEAD, so the merge was not undone",
            f"to undo the merge: git reset --keep {before}",
        )
    # `reset --merge` would discard changes that the check or the user has staged meanwhile;
    # `--keep` does not.
    done = here.repo.attempt("reset", "-q", "--keep", before)
    if done.code:
        raise MngrError(
            f"the check failed (exit code {code}), and the merge could not be undone: "
            f"{done.complaint}",
            f"then undo it with: git reset --keep {before}",
        )
    return f"the check failed with exit code {code}"
