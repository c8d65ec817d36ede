"""The folder of a report: a reader never sees half a page, and what did not change stays."""

from __future__ import annotations

import os
from pathlib import Path

from mngr.errors import Refused

MARK = ".mngr-report"


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = 0
        """Files written so far: those that were the same already do not count."""
        self._made: set[str] = set()

    def open(self) -> None:
        """A folder with other things in it is not ours to write into."""
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / MARK).exists():
            raise Refused(f"{self.path} is not empty and not a report", "choose a new directory")
        self.path.mkdir(parents=True, exist_ok=True)
        self.file(MARK, b"")

    def page(self, name: str, text: str) -> Path:
        return self.file(name, text.encode("utf-8", "replace"))

    def file(self, name: str, data: bytes) -> Path:
        target = self.path / name
        if self._holds(target, data):
            return target
        self._make(target.parent)
        fresh = target.with_name(f".{target.name[:100]}.{os.getpid()}")
        fresh.write_bytes(data)
        fresh.replace(target)
        self.written += 1
        return target

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def _holds(self, target: Path, data: bytes) -> bool:
        try:
            return target.stat().st_size == len(data) and target.read_bytes() == data
        except OSError:
            return False

    def _make(self, parent: Path) -> None:
        if str(parent) not in self._made:
            parent.mkdir(parents=True, exist_ok=True)
            self._made.add(str(parent))
