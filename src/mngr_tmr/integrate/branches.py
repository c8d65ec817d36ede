"""The branch of a run: moved only if the run moved it last and it is not checked out."""

from __future__ import annotations

from itertools import count

from mngr.api import Repo
from mngr.errors import MngrError, Refused
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.journal.model import Run
from mngr_tmr.verify.patches import ABSENT

TRIES = 3
"""Names that git may refuse, as when a branch tmr/RUN/x exists; then git cannot write any."""


def publish(repo: Repo, run: Run, tip: str, note: Note) -> str:
    """Return the branch that is now at `tip`: tmr/RUN, with a number if that must not move."""
    reason, refused = "", 0
    for number in count(1):
        name = f"tmr/{run.name}" if number == 1 else f"tmr/{run.name}-{number}"
        now = commit_of(repo, name)
        why = _in_the_way(repo, run, name, now, tip)
        if not why:
            note("published", {"branch": name, "was": now, "commit": tip, "reason": reason})
            why = _move(repo, name, now, tip)
            if not why:
                return name
            refused += 1
        if refused == TRIES:
            raise MngrError(f"the branch {name} could not be written: {why}")
        reason = reason or why
    raise AssertionError


def commit_of(repo: Repo, name: str) -> str:
    """Return the commit of a branch, or "" if there is no such branch."""
    return repo.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{name}") or ""


def _in_the_way(repo: Repo, run: Run, name: str, now: str, tip: str) -> str:
    if now and now not in run.published.get(name, ()):
        return f"{name} was changed outside mngr"
    place = checked_out(repo, name) if now != tip else ""
    return f"{name} is checked out in {place}" if place else ""


def checked_out(repo: Repo, name: str) -> str:
    """Return the work tree that has this branch checked out."""
    # Without -z, which git knows only since 2.36.
    for entry in repo.line("worktree", "list", "--porcelain").split("\n\n"):
        lines = entry.split("\n")
        if f"branch refs/heads/{name}" in lines:
            return lines[0].removeprefix("worktree ")
    return ""


def _move(repo: Repo, name: str, now: str, tip: str) -> str:
    """Move the branch, whose commits are in the journal, or return why git refuses."""
    words = ("update-ref", "-m", "mngr tmr", f"refs/heads/{name}", tip, now or ABSENT)
    done = repo.attempt(*words)
    return done.complaint if done.code else ""


def require_free(repo: Repo) -> None:
    """Raise if a branch makes all names of runs' branches impossible, before a run pays for it."""
    if commit_of(repo, "tmr"):
        why = f"a branch called 'tmr' in {repo.path} prevents creating branches such as tmr/NAME"
        raise Refused(why, "rename it: git branch -m tmr another-name")
