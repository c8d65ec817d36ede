"""Convert notes to text for people and for other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from jot.notes import Note, from_json
from jot.store import line, parse_json, parse_lines


def as_list(notes: Sequence[Note]) -> str:
    """Return one line per note: number, day, first line of the text, tags."""
    width = max((len(str(note.number)) for note in notes), default=0)
    return "".join(
        " ".join([f"{note.number:>{width}}", str(note.day), note.title(), *hashes(note)]) + "\n"
        for note in notes
    )


def hashes(note: Note) -> list[str]:
    return [f"#{tag}" for tag in note.tags]


def as_json(notes: Sequence[Note]) -> str:
    return json.dumps([note.to_json() for note in notes], ensure_ascii=False, indent=2) + "\n"


def as_jsonl(notes: Sequence[Note]) -> str:
    return "".join(line(note) for note in notes)


def as_csv(notes: Sequence[Note]) -> str:
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["number", "day", "text", "tags"])
    rows.writerows([note.number, note.day, note.text, " ".join(note.tags)] for note in notes)
    return table.getvalue()


def as_markdown(notes: Sequence[Note]) -> str:
    """Return a heading per day and a bullet per note."""
    lines = []
    day = None
    for note in sorted(notes, key=lambda note: (note.day, note.number)):
        if note.day != day:
            day = note.day
            lines += ["", f"## {day}", ""]
        text = note.text.replace("\n", "\n  ")
        lines.append(" ".join([f"- {text}", *(f"`{tag}`" for tag in hashes(note))]))
    return "\n".join(["# Notes", *lines]) + "\n"


FORMATS: dict[str, Callable[[Sequence[Note]], str]] = {
    "jsonl": as_jsonl,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}


def parse(text: str, name: str) -> list[Note]:
    """Return the notes in jsonl or json; the first character shows the format."""
    if not text.lstrip().startswith("["):
        return parse_lines(text, name)
    items = parse_json(text, name)
    assert isinstance(items, list)
    return [from_json(item, f"{name}, item {at}") for at, item in enumerate(items, start=1)]
