"""Notes, and all operations on them without the disk."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

from jot.errors import BadNote, JotError, NoSuchNote

TAG = re.compile(r"[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True)
class Note:
    number: int
    text: str
    day: date
    tags: tuple[str, ...] = ()

    def title(self) -> str:
        return self.text.partition("\n")[0]

    def to_json(self) -> dict[str, object]:
        return {
            "number": self.number,
            "day": self.day.isoformat(),
            "text": self.text,
            "tags": list(self.tags),
        }


def from_json(data: object, where: str) -> Note:
    """Return the note in JSON data; errors name its place, `where`."""
    if not isinstance(data, dict):
        raise BadNote(where, "expected an object")
    number, text, day, tags = (data.get(key) for key in ("number", "text", "day", "tags"))
    if not isinstance(text, str) or not text.strip():
        raise BadNote(where, "it has no text")
    if number is not None and (type(number) is not int or number < 1):
        raise BadNote(where, f"its number is {json.dumps(number)}")
    if not isinstance(tags, list | None) or not all(isinstance(tag, str) for tag in tags or ()):
        raise BadNote(where, "its tags are not a list of words")
    try:
        return Note(number or 0, text, parse_day(str(day)), clean_tags(tags or ()))
    except JotError as error:
        raise BadNote(where, str(error)) from None


def parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise JotError(f"{text} is not a date such as 2026-03-01") from None


def clean_tags(words: Iterable[str]) -> tuple[str, ...]:
    """Return the tags in lower case, without `#`, each once, in the given order."""
    tags = [word.removeprefix("#").lower() for word in words]
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise JotError(f"'{tag}' cannot be a tag; use letters, digits and dashes")
    return tuple(dict.fromkeys(tags))


def next_number(notes: Sequence[Note]) -> int:
    return max((note.number for note in notes), default=0) + 1


def find(notes: Iterable[Note], number: int) -> Note:
    for note in notes:
        if note.number == number:
            return note
    raise NoSuchNote(number)


def replaced(notes: Iterable[Note], changed: Note) -> list[Note]:
    return [changed if note.number == changed.number else note for note in notes]


def tagged(note: Note, tags: Sequence[str]) -> Note:
    return replace(note, tags=clean_tags((*note.tags, *tags)))


def untagged(note: Note, tags: Sequence[str]) -> Note:
    missing = [tag for tag in tags if tag not in note.tags]
    if missing:
        raise JotError(f"note {note.number} has no tag {missing[0]}")
    return replace(note, tags=tuple(tag for tag in note.tags if tag not in tags))


def between(notes: Iterable[Note], since: date | None, until: date | None) -> list[Note]:
    """Return the notes from `since` to `until`, both included."""
    if since:
        notes = [note for note in notes if note.day >= since]
    if until:
        notes = [note for note in notes if note.day <= until]
    return list(notes)


def with_tag(notes: Iterable[Note], tag: str) -> list[Note]:
    return [note for note in notes if tag in note.tags]


def newest(notes: Sequence[Note], count: int) -> list[Note]:
    """Return the last `count` notes by day, the oldest first."""
    ordered = sorted(notes, key=lambda note: (note.day, note.number))
    return ordered[max(len(ordered) - count, 0) :]


def matching(notes: Iterable[Note], words: Sequence[str], some: bool = False) -> list[Note]:
    """Return notes that contain every word (or with `some`, any), ignoring case."""
    wanted = [word.casefold() for word in words]
    enough = any if some else all
    return [note for note in notes if enough(word in note.text.casefold() for word in wanted)]


def tag_counts(notes: Iterable[Note]) -> list[tuple[str, int]]:
    """Return each tag with its count, most used first, then by name."""
    counts = Counter(tag for note in notes for tag in note.tags)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def not_yet_in(notes: Iterable[Note], incoming: Iterable[Note]) -> list[Note]:
    """Return the new notes; notes with the same day and text are equal."""
    known = {(note.day, note.text) for note in notes}
    fresh = []
    for note in incoming:
        if (note.day, note.text) not in known:
            known.add((note.day, note.text))
            fresh.append(note)
    return fresh
