"""Store notes: one JSON object per line, replaced as a whole, by one writer at a time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from jot.errors import BadNote
from jot.notes import Note, from_json


def home() -> Path:
    return Path(os.environ.get("JOT_HOME") or Path.home() / ".jot")


class Store:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "notes.jsonl"

    def read(self) -> list[Note]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        return parse_lines(text, str(self.path))

    @contextmanager
    def change(self) -> Iterator[list[Note]]:
        """Yield the notes as a list to change in place; write it unless an error is raised."""
        self.directory.mkdir(parents=True, exist_ok=True)
        with open(self.directory / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            notes = self.read()
            before = list(notes)
            yield notes
            if notes != before:
                write_whole(self.path, "".join(line(note) for note in notes))


def line(note: Note) -> str:
    return json.dumps(note.to_json(), ensure_ascii=False) + "\n"


def parse_lines(text: str, name: str) -> list[Note]:
    return [
        from_json(parse_json(part, f"{name}, line {count}"), f"{name}, line {count}")
        for count, part in enumerate(text.split("\n"), start=1)
        if part.strip()
    ]


def parse_json(text: str, where: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise BadNote(where, f"this is not JSON ({error})") from None
    return value


def write_whole(path: Path, text: str) -> None:
    """Write a file so that readers see the old or the new one, even after a crash."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        error.filename = str(path)  # the user does not know the temporary name
        raise
    finally:
        beside.unlink(missing_ok=True)


def write_out(path: Path, text: str) -> None:
    """Write to a path chosen by the user, which may be a link, a pipe or a terminal."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        write_whole(path.resolve(), text)


def numbered(notes: Sequence[Note], first: int) -> list[Note]:
    return [Note(first + at, note.text, note.day, note.tags) for at, note in enumerate(notes)]
