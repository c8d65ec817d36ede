"""The journal of a run: one append-only file with everything that happened, in order.

Only one process writes it at a time. An event is on the disk before the action that it announces,
so after a kill the journal shows what may have begun.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from mngr.errors import Refused
from mngr.model.events import iso
from mngr.model.struct import Json
from mngr_tmr.journal.events import Event, as_table, loaded

NAME = "journal.jsonl"


def read(folder: Path) -> Iterator[Event]:
    return JournalReader(folder).fresh()


class JournalReader:
    """Reads a journal that may be growing."""

    def __init__(self, folder: Path) -> None:
        self._path, self._offset = folder / NAME, 0

    def fresh(self) -> Iterator[Event]:
        """Yield the events since the last call, without the torn line of a killed writer."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if not line.endswith(b"\n"):
                        return  # perhaps it is being written
                    self._offset += len(line)
                    event = as_table(loaded(line))
                    if isinstance(event.get("type"), str):
                        yield event
        except FileNotFoundError:
            return


class Journal:
    """The writer of a journal. `with Journal(folder, clock) as journal: journal.append(...)`."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder, self._clock = folder, clock
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = (self.folder / NAME).open("ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise Refused(
                f"the run {self.folder.name} is in progress in another process",
                f"follow it with `mngr tmr watch {self.folder.name}`",
            ) from None
        self._end_torn_line()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._file is not None
        with suppress(OSError):  # on a full disk `append` has raised it
            self._file.close()

    def _end_torn_line(self) -> None:
        assert self._file is not None
        size = os.fstat(self._file.fileno()).st_size
        with (self.folder / NAME).open("rb") as file:
            file.seek(max(0, size - 1))
            if file.read(1) not in (b"", b"\n"):
                self._file.write(b"\n")
                self._file.flush()

    def append(self, type: str, fields: Mapping[str, Json], *, sync: bool = True) -> Event:
        """Append an event and return it; `sync` it before an action that it announces."""
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
        """Flush all events to the disk, so that they survive a crash of the machine."""
        assert self._file is not None
        os.fsync(self._file.fileno())


def is_at_work(folder: Path) -> bool:
    """Return whether a process has the journal open for writing."""
    try:
        with (folder / NAME).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
