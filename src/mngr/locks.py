"""flock, only on the controller's own disk, on files that are never unlinked."""

from __future__ import annotations

import fcntl
import os
import zlib


class Lock:
    """`with Lock(home, "repo", path):` waits for the lock; the kernel frees it at any exit."""

    def __init__(self, home: str, kind: str, key: str) -> None:
        raw = key.encode("utf-8", "surrogateescape")
        self._path = os.path.join(home, "locks", f"{kind}-{zlib.crc32(raw):08x}")

    def __enter__(self) -> None:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
