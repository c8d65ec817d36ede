"""The branch of a run: moved only if the run moved it last and it is not checked out."""

from __future__ import annotations

from itertools import count

from mngr.api import Repo
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.journal.model import Run
from mngr_tmr.verify.patches import ABSENT


def publish(repo: Repo, run: Run, tip: str, note: Note) -> str:
    """Return the branch that is now at `tip`: tmr/RUN, with a number if that must not move."""
    reason = ""
    for number in count(1):
        name = f"tmr/{run.name}" if number == 1 else f"tmr/{run.name}-{number}"
        now = commit_of(repo, name)
        why = _in_the_way(repo, run, name, now, tip)
        if not why and _moved(repo, name, now, tip, note, reason):
            return name
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


def _moved(repo: Repo, name: str, now: str, tip: str, note: Note, reason: str) -> bool:
    """Move the branch; both commits are journalled first, in case the run is killed."""
    note("published", {"branch": name, "was": now, "commit": tip, "reason": reason})
    words = ("update-ref", "-m", "mngr tmr", f"refs/heads/{name}", tip, now or ABSENT)
    return repo.attempt(*words).code == 0
