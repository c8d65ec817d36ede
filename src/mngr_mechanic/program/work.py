"""The agent's work directory: its changes, a commit, and the outcome."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass


class GitFailed(Exception):
    """git failed; the message is git's."""


@dataclass(frozen=True)
class Done:
    """The outcome to publish."""

    attempted: str
    summary: str
    blocked: str = ""
    needs: str = ""
    no_fix: bool = False
    """Whether nothing is missing, but no fix was found."""


def git(root: str, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", root, *args], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise GitFailed(said or f"git {args[0]} failed")
    return done.stdout.decode("utf-8", "replace")


def changed(root: str) -> list[str]:
    """Return files with uncommitted changes."""
    parts = git(root, "status", "--porcelain", "-z").split("\0")
    return [part[3:] for part in parts if len(part) > 3]


def replace(path: str, text: str) -> None:
    """Replace a file by rename: readers see the old file or the new one."""
    mode = os.stat(path).st_mode & 0o7777
    handle, beside = tempfile.mkstemp(prefix=".mechanic-", dir=os.path.dirname(path))
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(beside, mode)
    os.replace(beside, path)


def commit(root: str, path: str, text: str, message: str) -> str:
    """Commit a change of one file. If git refuses, for example by a hook, restore the file."""
    place = os.path.join(root, path)
    with open(place, encoding="utf-8", newline="") as file:
        before = file.read()
    replace(place, text)
    try:
        words = ("commit", "--no-gpg-sign", "--quiet", "--message", message, "--only", "--", path)
        git(root, *_author(root), *words)
    except GitFailed:
        replace(place, before)
        raise
    return git(root, "rev-parse", "HEAD").strip()


def _author(root: str) -> list[str]:
    """Return the git identity of the user, or a neutral one."""
    try:
        git(root, "var", "GIT_COMMITTER_IDENT")
        git(root, "var", "GIT_AUTHOR_IDENT")
    except GitFailed:
        return ["-c", "user.name=mechanic", "-c", "user.email=mechanic@localhost"]
    return []


def publish(root: str, done: Done) -> str:
    """Publish the outcome with the script in the state directory, and return its message."""
    state = os.environ.get("MNGR_AGENT_STATE_DIR", "")
    script = os.path.join(state, "publish")
    if not state or not os.path.exists(script):
        return "not published: this agent does not belong to a run"
    words = [script, "--attempted", done.attempted, f"--summary={done.summary}"]
    if done.blocked:
        words += [f"--blocked={done.blocked}", f"--needs={done.needs}"]
        words += ["--no-fix"] if done.no_fix else []
    ended = subprocess.run(
        words, cwd=root, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    said = (ended.stdout + ended.stderr).decode("utf-8", "replace").strip()
    if ended.returncode:
        raise GitFailed(said)
    return said
