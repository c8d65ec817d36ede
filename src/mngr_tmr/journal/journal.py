"""The spine of a run: one append-only file that says all that happened, in order.

One process writes it at a time. A line is on the disk before what it announces is done, so after
any kill the file tells what may have been begun.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

from mngr.errors import Refused
from mngr.model.events import iso
from mngr.model.struct import Json
from mngr_tmr.journal.events import as_table, loaded
from mngr_tmr.journal.model import Event

NAME = "journal.jsonl"


def read(folder: Path) -> Iterator[Event]:
    """Every whole line; a torn one, the end of a killed writer, is passed over."""
    try:
        with (folder / NAME).open("rb") as file:
            for line in file:
                event = parsed(line)
                if event is not None:
                    yield event
    except FileNotFoundError:
        return


def parsed(line: bytes) -> Event | None:
    if not line.endswith(b"\n"):
        return None
    event = as_table(loaded(line))
    return event if isinstance(event.get("type"), str) else None


class Journal:
    """The one writer. `with Journal(folder, clock) as journal: journal.append(...)`."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._folder, self._clock = folder, clock
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = (self._folder / NAME).open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise Refused(
                f"the run {self._folder.name} is in progress in another process",
                f"follow it with `mngr tmr watch {self._folder.name}`",
            ) from None
        self._end_torn_line()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._file is not None
        self._file.close()

    def _end_torn_line(self) -> None:
        assert self._file is not None
        path = self._folder / NAME
        if path.stat().st_size and path.read_bytes()[-1:] != b"\n":
            self._file.write(b"\n")
            self._file.flush()

    def append(self, type: str, fields: Mapping[str, Json], *, sync: bool = True) -> Event:
        """`sync` before whatever the event announces has an effect outside."""
        assert self._file is not None
        now = self._clock()
        event: dict[str, Json] = {
            "event_id": f"evt-{secrets.token_hex(8)}",
            "timestamp": iso(now),
            "time": now,
            "source": "tmr",
            "type": type,
            **fields,
        }
        self._file.write(json.dumps(event, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        if sync:
            self.sync()
        return event

    def sync(self) -> None:
        """All that was appended is on the disk, also should the machine fail."""
        assert self._file is not None
        os.fsync(self._file.fileno())


def is_at_work(folder: Path) -> bool:
    """Whether a process has the journal open for writing."""
    try:
        with (folder / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False
