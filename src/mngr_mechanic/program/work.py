"""The agent's own tree: what is in it, a commit in it, and the outcome."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass


class GitFailed(Exception):
    """git would not do it; the message is its own."""


@dataclass(frozen=True)
class Done:
    """What to publish."""

    attempted: str
    summary: str
    blocked: str = ""
    needs: str = ""


def git(root: str, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", root, *args], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        raise GitFailed(said or f"git {args[0]} failed")
    return done.stdout.decode("utf-8", "replace")


def top(folder: str) -> str:
    return git(folder, "rev-parse", "--show-toplevel").rstrip("\n")


def changed(root: str) -> list[str]:
    """Files that are not as they were committed."""
    parts = git(root, "status", "--porcelain", "-z").split("\0")
    return [part[3:] for part in parts if len(part) > 3]


def replace(path: str, text: str) -> None:
    """The old file or the new one, whenever we are killed."""
    mode = os.stat(path).st_mode & 0o7777
    handle, beside = tempfile.mkstemp(prefix=".mechanic-", dir=os.path.dirname(path))
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(beside, mode)
    os.replace(beside, path)


def commit(root: str, path: str, text: str, message: str) -> str:
    """One file changes. If git refuses, say because of a hook, it is put back."""
    place = os.path.join(root, path)
    with open(place, encoding="utf-8", newline="") as file:
        before = file.read()
    replace(place, text)
    try:
        git(
            root,
            *_author(root),
            "commit",
            "--no-gpg-sign",
            "--quiet",
            "--message",
            message,
            "--only",
            "--",
            path,
        )
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
    """Through the script beside our state; what it says is returned."""
    state = os.environ.get("MNGR_AGENT_STATE_DIR", "")
    script = os.path.join(state, "publish")
    if not state or not os.path.exists(script):
        return "not published: this agent belongs to no run"
    words = [script, "--attempted", done.attempted, f"--summary={done.summary}"]
    if done.blocked:
        words += [f"--blocked={done.blocked}", f"--needs={done.needs}"]
    ended = subprocess.run(
        words, cwd=root, capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    said = (ended.stdout + ended.stderr).decode("utf-8", "replace").strip()
    if ended.returncode:
        raise GitFailed(said)
    return said
