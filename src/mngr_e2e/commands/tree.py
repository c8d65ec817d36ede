"""Find and end every process that a command started, even if it tried to escape.

A child can leave its process group with `setsid` and its parent by forking twice, but it keeps its
environment, in which each command has its own mark. A child can also get another environment, for
example by `env -i`. So on Linux there is a second mark, a soft limit on resident memory: every
descendant inherits it, and the kernel does not enforce it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import zlib
from collections.abc import Callable, Collection

MARK = "E2E_MARK"
FIRST_WAIT, LONGEST_WAIT = 0.002, 0.05
# For a shell: run the words with the limit `$0`. Without /proc the limit could not be read.
LIMITED = '[ ! -r /proc/self/limits ] || ulimit -S -m "$0" 2>/dev/null; exec "$@"'
OF_TEST, OF_RUN = 12, 28
"""Bits in which the limits of one test's commands differ, and those of one run's."""


def limit(run: str, mark: str = "") -> int:
    """Return the limit in KiB, larger than any memory, for /TEST.COMMAND/ of a run .../RUN/."""
    name = run.strip("/").rpartition("/")[2]
    test = zlib.crc32(mark.partition(".")[0].encode()) & 0xFFFF
    command = zlib.crc32(mark.encode()) & 0xFFF
    shared = (zlib.crc32(name.encode()) & 0xFFFFFF) << OF_RUN
    return 1 << 52 | shared | test << OF_TEST | command


def limited(wanted: int, differing: int = 0, ignore: Collection[str] = ()) -> set[int]:
    """Return the processes with this limit, except for its last bits; without `ignore`."""
    pids = [name for name in _pids() if name not in ignore]
    return {
        int(pid)
        for pid in pids
        if _limit(pid) >> differing == wanted >> differing and not _is_zombie(pid)
    }


def _limit(pid: str) -> int:
    told = _read(pid, "limits").partition(b"Max resident set")[2].split(None, 1)
    return int(told[0]) >> 10 if told and told[0].isdigit() else 0


def marked(marks: Collection[str], ignore: Collection[str] = ()) -> set[int]:
    """Return the processes whose environment contains a mark; without `ignore`."""
    wanted = [mark.encode() for mark in marks]
    if not sys.platform.startswith("linux"):
        return _marked_by_ps(wanted)
    pids = [name for name in _pids() if name not in ignore]
    return {int(pid) for pid in pids if _holds(pid, wanted) and not _is_zombie(pid)}


def _holds(pid: str, wanted: list[bytes]) -> bool:
    environment = _read(pid, "environ")
    return any(mark in environment for mark in wanted)


def _pids() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def snapshot() -> frozenset[str]:
    """Return the ids of all processes: those that exist before a test are not its own."""
    return frozenset(_pids())


def _read(pid: str, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # it has ended, or belongs to another user
        return b""


def _is_zombie(pid: str) -> bool:
    return _stat(pid)[:1] == [b"Z"]


def _stat(pid: str) -> list[bytes]:
    """Return state, parent, …: the fields after the name, which may contain parentheses."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _marked_by_ps(wanted: list[bytes]) -> set[int]:
    import subprocess  # importing it takes half as long as starting the interpreter

    listing = subprocess.run(
        ["ps", "-axEww", "-o", "pid=,command="], capture_output=True, check=False
    ).stdout
    lines = [line for line in listing.splitlines() if any(mark in line for mark in wanted)]
    return {int(line.split(None, 1)[0]) for line in lines}


def descendants(root: int, ignore: Collection[str] = ()) -> set[int]:
    """Return the descendants by parent, which finds a child with another environment."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        stat = _stat(pid) if pid not in ignore else []
        if len(stat) > 1 and stat[0] != b"Z":
            children.setdefault(int(stat[1]), []).append(int(pid))
    found: set[int] = set()
    todo = [root]
    while todo:
        new = children.get(todo.pop(), [])
        found.update(new)
        todo.extend(new)
    return found


def send(pids: Collection[int], number: signal.Signals) -> None:
    """Signal parents before their children: a shell reports a child that was ended before it."""
    for pid in sorted(pids, key=_started):
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _started(pid: int) -> tuple[int, int]:
    stat = _stat(str(pid))
    return (int(stat[19]) if len(stat) > 19 else 0, pid)


def end(find: Callable[[], set[int]], grace: float, meanwhile: Callable[[float], None]) -> None:
    """Send TERM to what `find` returns, and KILL after `grace` seconds, until nothing is left.

    `meanwhile` waits for the given seconds: it may read the last output of these processes.
    """
    seen = find() or find()  # a process that forks now may be missed in one search
    if not seen:
        return
    send(seen, signal.SIGTERM)
    until_gone(find, time.monotonic() + grace, meanwhile)
    deadline = time.monotonic() + 5  # a process may be stuck in the kernel
    while (left := find()) and time.monotonic() < deadline:
        send(left, signal.SIGKILL)
        meanwhile(FIRST_WAIT)


def until_gone(
    find: Callable[[], set[int]], deadline: float, meanwhile: Callable[[float], None]
) -> None:
    pause = FIRST_WAIT
    while find() and time.monotonic() < deadline:
        meanwhile(pause)
        pause = min(pause * 2, LONGEST_WAIT)


def alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(str(pid))
