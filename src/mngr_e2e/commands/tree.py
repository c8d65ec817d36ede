"""Find and end every process that a command started, however it tried to get away.

A child can leave its process group with `setsid` and its parent by forking twice, but it keeps
the environment it was started with: each command carries a mark of its own there. A child may be
given another environment, by `env -i` say. So on Linux there is a second mark, a soft limit on
resident memory: every descendant inherits it, and the kernel has not heeded it for twenty years.
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


# For a shell: `$0` is the limit, the words are run with it. Without /proc it could not be read.
LIMITED = '[ ! -r /proc/self/limits ] || ulimit -S -m "$0" 2>/dev/null; exec "$@"'
OF_TEST, OF_RUN = 12, 28
"""Bits by which the limits of one test's commands differ, and those of one run's."""


def limit(run: str, mark: str = "") -> int:
    """In KiB, more than any machine has; `mark` is /TEST.COMMAND/, `run` ends in /RUN/."""
    name = run.strip("/").rpartition("/")[2]
    test = zlib.crc32(mark.partition(".")[0].encode()) & 0xFFFF
    command = zlib.crc32(mark.encode()) & 0xFFF
    shared = (zlib.crc32(name.encode()) & 0xFFFFFF) << OF_RUN
    return 1 << 52 | shared | test << OF_TEST | command


def limited(wanted: int, differing: int = 0, ignore: Collection[str] = ()) -> set[int]:
    """The live processes with this limit, but for its last bits and those named in `ignore`."""
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
    """The live processes whose environment holds a mark, but for those named in `ignore`."""
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
    """The processes of this moment. What exists before a test is none of its own."""
    return frozenset(_pids())


def _read(pid: str, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # gone, or another user's
        return b""


def _is_zombie(pid: str) -> bool:
    return _stat(pid)[:1] == [b"Z"]


def _stat(pid: str) -> list[bytes]:
    """State, parent, … : what follows the name, which may hold blanks and parentheses."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _marked_by_ps(wanted: list[bytes]) -> set[int]:
    import subprocess  # half of a bare interpreter's start, and of use only here

    listing = subprocess.run(
        ["ps", "-axEww", "-o", "pid=,command="], capture_output=True, check=False
    ).stdout
    lines = [line for line in listing.splitlines() if any(mark in line for mark in wanted)]
    return {int(line.split(None, 1)[0]) for line in lines}


def descendants(root: int, ignore: Collection[str] = ()) -> set[int]:
    """By parent: this catches a child that was given another environment."""
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
    """TERM what `find` finds, KILL what is left after `grace`, until nothing is found.

    `meanwhile` waits for the seconds given: a process that is told to end may have more to say.
    """
    seen = find() or find()  # what forks while we look may be missed once
    if not seen:
        return
    send(seen, signal.SIGTERM)
    until_gone(find, time.monotonic() + grace, meanwhile)
    deadline = time.monotonic() + 5  # a process may be stuck in the kernel: that is not our wait
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
    """Not gone, nor only waiting for its parent to notice."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(str(pid))
