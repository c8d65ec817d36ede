"""Identify processes and check whether they are alive; PIDs are reused, so start times count."""

from __future__ import annotations

import os

from mngr.hosts import spawn
from mngr.model.records import Worker


def start_of(pid: int) -> str:
    """Return a text that no later process with this pid has; "" if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command name may contain blanks and brackets; the fields after it do not.
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return "" if os.path.isdir("/proc/self") else _start_by_ps(pid)


def _start_by_ps(pid: int) -> str:
    """Return the start time from ps, because macOS has no /proc."""
    return spawn.run(["ps", "-o", "lstart=", "-p", str(pid)], timeout=10).stdout.decode().strip()


def this_process() -> Worker:
    return Worker(machine=os.uname().nodename, pid=os.getpid(), start=start_of(os.getpid()))


FOREIGN_PATIENCE = 600.0
"""Seconds for which a process on another machine, which cannot be checked, counts as alive."""


def is_alive(worker: Worker, *, since: float, now: float) -> bool:
    if worker.machine != os.uname().nodename:
        return now - since < FOREIGN_PATIENCE
    return bool(worker.start) and start_of(worker.pid) == worker.start
