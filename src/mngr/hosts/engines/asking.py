"""Whether an engine may still create a host that it was asked for.

While an engine is asked for a host, two locks are held on $MNGR_HOST_DIR/hosts/asked/<host id>.
lockf ends with mngr. flock is inherited by the program that asks, which keeps running even if mngr
is killed. The file is removed once the answer is known. Until then, the list of the engine does not
prove that no host will be created.
"""

from __future__ import annotations

import fcntl
import os
import time

from mngr.errors import TimedOut

BEING_MADE = "being created"
UNANSWERED = "not confirmed yet: the provider may still create it"
SETTLE = 60.0
"""Seconds in which an engine may still create a host for a program that no longer waits."""
LONGEST = 7200.0
"""Seconds after which a held lock is ignored: a template may leave a process that holds it."""
SILENCE = (
    *("timeout", "time out", "timedout", "timed out", "deadline exceeded"),
    *("eof", "reset by peer", "zero bytes"),
)


class Asking:
    """`with Asking(home, id):` around the request and the record of its answer."""

    def __init__(self, home: str, host_id: str) -> None:
        self._path = _path(home, host_id)

    def __enter__(self) -> None:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        os.set_inheritable(self._file, True)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (TimedOut, KeyboardInterrupt)) or _unanswered(str(error or "")):
            os.utime(self._path)  # the time to settle begins now
        else:
            os.unlink(self._path)
        os.close(self._file)


def pending(home: str, host_id: str, *, listed: bool) -> str:
    """Return BEING_MADE, UNANSWERED, or "" if the list of the engine is final.

    A host that is `listed` is only waited for while mngr is creating it.
    """
    try:
        file = os.open(_path(home, host_id), os.O_RDONLY)
    except FileNotFoundError:
        return ""
    age = time.time() - os.fstat(file).st_mtime
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        if listed:
            return ""
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # lockf may raise either
        return BEING_MADE if age < LONGEST else ""
    finally:
        os.close(file)
    return UNANSWERED if age < SETTLE else ""


def _unanswered(told: str) -> bool:
    """Return whether a program sent its request and got no answer, from its error message."""
    return any(words in told.lower() for words in SILENCE) and "refused" not in told


def _path(home: str, host_id: str) -> str:
    return os.path.join(home, "hosts", "asked", host_id)
