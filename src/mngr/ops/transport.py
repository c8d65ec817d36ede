"""How this machine's git, and its pipes, reach a host: everything follows from `host.argv`."""

from __future__ import annotations

from mngr.git import Repo
from mngr.hosts import spawn
from mngr.quoting import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.git import Run
    from mngr.hosts.base import Completed, Host
    from mngr.hosts.spawn import Sink

DEADLINE = 6 * 3600.0
"""Seconds a whole tree may take over a thin line."""

SERVICE = "\0"
"""Stands for git's service in an argv: no word can hold it, and no host's quoting touches it."""


def is_here(host: Host) -> bool:
    """Whether commands for that host simply run on this machine."""
    return host.argv(["x"]) == ["x"]


def here(path: str) -> Repo:
    """A repository on this machine."""
    return Repo(run=spawn.run, path=path)


def source_run(host: Host) -> Run:
    """What runs git in a directory of this machine: the host itself where paths mean the same."""
    return host.run if host.capabilities.shares_files else spawn.run


def url(host: Host, path: str) -> str:
    """The name by which git on this machine reaches a repository on that host."""
    if is_here(host):
        return path
    words = host.argv(["git", "-c", "safe.directory=*", SERVICE, path])
    return "ext::" + " ".join(map(ext_word, words))


def ext_word(word: str) -> str:
    """One word of an ext:: address, where a space ends a word and % begins a sign."""
    return word.replace("%", "%%").replace(" ", "% ").replace(SERVICE, "%s")


def pipe(first: Sequence[str], second: Sequence[str], sink: Sink | None = None) -> Completed:
    """`first | second`, both on this machine; it fails when either does."""
    script = (
        f"exec 3>&1\nfailed=$({{ {{ {join(first)} || echo 1 >&4; }} |"
        f' {join(second)} >&3 || echo 2 >&4; }} 4>&1)\n[ -z "$failed" ]'
    )
    return spawn.run(["sh", "-c", script], timeout=DEADLINE, sink=sink)
