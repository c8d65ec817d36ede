"""The folders of runs, `.mngr-e2e/<run>`: open one, and remove all but the newest.

A process that uses a run's folder holds a shared lock on its `.lock`. The kernel releases the lock
when the process ends, so no run stays locked.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from mngr_e2e.artifacts import point, write_whole

LOCK = ".lock"
OLD = ".old-"
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4}")


class RunFolder:
    """A run's folder, locked until `close`; the link `latest` names it."""

    def __init__(self, base: Path, name: str, keep: int) -> None:
        self.folder = base / name
        self._lock = _hold(self.folder)
        ignore = base / ".gitignore"
        if not ignore.exists():
            write_whole(ignore, "*\n")
        point(base / "latest", name)
        if keep:
            remove_old(base, keep)

    def close(self) -> None:
        os.close(self._lock)


def _hold(folder: Path) -> int:
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it was just removed as an old one: create it again
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
            fcntl.flock(lock, fcntl.LOCK_SH)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(folder / LOCK)):
                    os.utime(lock)
                    return lock
            os.close(lock)


def remove_old(base: Path, keep: int) -> None:
    """Remove all but the newest runs; another process may do the same, or use one of them."""
    runs = [path for path in base.iterdir() if _is_run(path)]
    runs.sort(key=_opened, reverse=True)
    for run in runs[keep:]:
        _remove_unused(base, run)
    for rest in base.glob(f"{OLD}*"):  # left by a process that was killed while removing
        shutil.rmtree(rest, ignore_errors=True)


def _is_run(path: Path) -> bool:
    """Return whether this is a run: the folder may contain other files, which are kept."""
    if path.is_symlink() or path.name.startswith("."):
        return False
    return (path / LOCK).is_file() or bool(_RUN_ID.fullmatch(path.name) and path.is_dir())


def _opened(run: Path) -> float:
    for path in (run / LOCK, run):
        with suppress(OSError):
            return path.stat().st_mtime
    return 0.0


def _remove_unused(base: Path, run: Path) -> None:
    with suppress(OSError):  # another process has removed it, or uses it
        lock = os.open(run / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # By rename, so that no process sees a partial folder.
            run.rename(base / f"{OLD}{secrets.token_hex(6)}")
        finally:
            os.close(lock)
