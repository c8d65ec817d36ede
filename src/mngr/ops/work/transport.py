"""Connect this machine's git and pipes to a host, with `host.argv`."""

from __future__ import annotations

import os
import time

from mngr.errors import TimedOut, Unreachable
from mngr.git.exchange import BY_VARIABLE, SERVE, SERVICE, Bare, Way
from mngr.git.repository import Repo
from mngr.git.stranger import Stranger
from mngr.git.stranger_scripts import CLEAN
from mngr.hosts import spawn
from mngr.hosts.base import QUIET, is_here
from mngr.model.quoting import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.git.repository import Runner
    from mngr.hosts.base import Host
    from mngr.hosts.spawn import Sink
    from mngr.model.completed import Completed
    from mngr.model.records import AgentRecord

DEADLINE = 6 * 3600.0
"""Seconds that a whole tree may take over a slow connection."""


def pause(host: Host, usual: float) -> float:
    """Return the seconds between two readings of an agent; longer for a remote host."""
    return usual if is_here(host) else max(usual, 0.5)


def require_answer(host: Host) -> None:
    """Raise Unreachable if a failure was the host's: exit codes do not show it."""
    if is_here(host):
        return
    try:
        host.run(["true"], timeout=20)
    except TimedOut:
        raise Unreachable(f"host {host.ref.name} did not answer within 20 s") from None


def here(path: str) -> Repo:
    """Return a repository on this machine."""
    return Repo(run=spawn.run, path=path)


def source(path: str) -> Repo:
    """Return the source of an agent on this machine; it may be a bare repository."""
    bare = os.path.isdir(os.path.join(path, "refs")) and not os.path.exists(f"{path}/.git")
    return Bare(run=spawn.run, path=path) if bare else here(path)


def origin(record: AgentRecord) -> str:
    """Return the source of an agent; its repository, if the source was a worktree that is gone."""
    folder, name = os.path.split(record.repository)
    known = name == ".git" or os.path.isabs(record.source)  # not the mirror of a URL
    if not known or os.path.isdir(record.source) or not os.path.isdir(record.repository):
        return record.source
    return folder if name == ".git" else record.repository


def theirs(host: Host, record: AgentRecord) -> Stranger:
    """Return an agent's work directory."""
    return stranger(host, record.work_dir, record.transfer, origin(record))


def cleaned(host: Host) -> Runner:
    """Return a function that runs commands on a host with only the basic environment."""
    clean = ["sh", "-c", CLEAN + 'clean "$@"', "mngr"]

    def run(argv: Sequence[str], *, input: bytes | None = None, timeout: float) -> Completed:
        return host.run([*clean, *argv], input=input, timeout=timeout)

    return run


def stranger(host: Host, path: str, transfer: str, source: str) -> Stranger:
    return Stranger(run=host.run, path=path, home=host.home, kind=transfer, source=source)


def through_door(home: str, repo: Repo) -> Stranger:
    """Return a local repository without its own configuration."""
    kind = "bare" if isinstance(repo, Bare) else "none"
    return Stranger(run=spawn.run, path=repo.path, home=home, kind=kind)


def source_run(host: Host) -> Runner:
    """Return a function that runs git in a local directory, on the host if paths are shared."""
    return host.run if host.capabilities.shares_files else spawn.run


def to_mirror(host: Host, path: str) -> Way:
    """Return how git on this machine reaches a mirror on that host."""
    if is_here(host):
        return Way(url=path)
    quiet = ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null"]
    words = piped(host, ["git", *quiet, SERVICE, path])
    return Way(url="ext::" + " ".join(map(ext_word, words)), run=_attentive(host))


def to_agent(host: Host, work: Stranger) -> Way:
    """Return how git on this machine reaches an agent's repository, through its door."""
    command = join(piped(host, work.argv(SERVE, SERVICE)))
    url = work.path if is_here(host) else BY_VARIABLE
    return Way(url=url, command=command, run=_attentive(host))


# Both are one line, so that they can be part of an address.
MARK = 'printf "\\n%s\\n" "$0"; exec "$@"'
AFTER_MARK = (
    'exec 4>&1; exit "$({ { "$@" 3>&- 4>&-; echo $? >&3; } | '
    '{ while IFS= read -r line; do [ "$line" != "$0" ] || exec cat >&4 3>&-; done; } 3>&-; } 3>&1)"'
)


def piped(host: Host, argv: Sequence[str]) -> list[str]:
    """Return the local command that runs `argv` there and whose output is only that of `argv`.

    Git and tar cannot read what a login shell prints before it.
    """
    if not host.greets:
        return host.argv(argv)
    mark = os.urandom(8).hex()
    return ["sh", "-c", AFTER_MARK, mark, *host.argv(["sh", "-c", MARK, mark, *argv])]


def ext_word(word: str) -> str:
    """Escape one word of an ext:: address, in which spaces and % are special."""
    return word.replace("%", "%%").replace(" ", "% ").replace(SERVICE, "%s")


def pipe(
    first: Sequence[str], second: Sequence[str], host: Host, sink: Sink | None = None
) -> Completed:
    """Run `first | second` on this machine; fail if either does.

    End early if `host`, which one of them connects to, no longer answers.
    """
    script = (
        f"exec 3>&1\nfailed=$({{ {{ {join(first)} || echo 1 >&4; }} |"
        f' {join(second)} >&3 || echo 2 >&4; }} 4>&1)\n[ -z "$failed" ]'
    )
    return spawn.run(["sh", "-c", script], timeout=DEADLINE, sink=sink, until=_asking(host))


def _attentive(host: Host) -> Runner | None:
    """Return a function that runs git locally and ends it if `host` no longer answers."""
    if host.capabilities.shares_files:
        return None

    def run(argv: Sequence[str], *, input: bytes | None = None, timeout: float) -> Completed:
        return spawn.run(argv, input=input, timeout=timeout, until=_asking(host))

    return run


def _asking(host: Host) -> Callable[[], bool]:
    """Return a check that asks the host from time to time and raises if it does not answer."""
    asked = time.monotonic()

    def silent() -> bool:
        nonlocal asked
        if not is_here(host) and time.monotonic() - asked > QUIET * host.patience:
            require_answer(host)
            asked = time.monotonic()
        return False

    return silent
