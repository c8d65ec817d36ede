"""Read artifacts of test runs, and the conversation of an agent.

Agents write these files. Only plain files of a limited size are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mngr.model.struct import Json
from mngr_e2e.artifacts import slug
from mngr_tmr.journal.events import as_table, loaded, number_of, tables_in, tables_of, text_of
from mngr_view.markup import decoded

READ_LIMIT = 4 << 20
RUNS, CASTS = 5, 6
"""Maximum number of runs and recordings that are shown, newest first."""


@dataclass(frozen=True)
class Recorded:
    """One run of a test."""

    name: str
    outcome: str
    seconds: float
    noop: bool
    block: str
    commands: tuple[tuple[str, int | None], ...]
    """Text and exit code; None if it did not end."""
    transcript: str
    casts: tuple[Path, ...]


@dataclass(frozen=True)
class Spoken:
    """One turn of a conversation."""

    who: str
    text: str
    time: str
    tools: tuple[tuple[str, str], ...]
    """name, input"""


def recorded(folder: Path, node_id: str) -> tuple[list[Recorded], int]:
    """Return the newest runs of a test, newest first, and the number of older ones."""
    home = folder / ".mngr-e2e"
    names = [name for name in _names(home) if _is_folder(home / name / slug(node_id))]
    shown = sorted(names, reverse=True)[:RUNS]
    return [_recorded(home / name / slug(node_id), name) for name in shown], len(names) - len(shown)


def _recorded(folder: Path, name: str) -> Recorded:
    told = as_table(loaded(content(folder / "result.json")))
    commands = [each for each in tables_of(told, "commands") if each.get("text")]
    return Recorded(
        name=name,
        outcome=text_of(told, "outcome"),
        seconds=number_of(told, "seconds"),
        noop=told.get("noop") is True,
        block=text_of(told, "block"),
        commands=tuple((text_of(each, "text"), _code(each)) for each in commands[:200]),
        transcript=decoded(content(folder / "transcript.txt")),
        casts=tuple(_casts(folder)),
    )


def _casts(folder: Path) -> Sequence[Path]:
    names = sorted(name for name in _names(folder) if name.endswith(".cast"))
    return [folder / name for name in names if content(folder / name)][:CASTS]


def conversation(folder: Path) -> list[Spoken]:
    return [
        Spoken(
            who=text_of(turn, "type"),
            text=text_of(turn, "text"),
            time=text_of(turn, "time"),
            tools=tuple(_tool(each) for each in tables_of(turn, "tools")[:50]),
        )
        for turn in tables_in(loaded(content(folder / "conversation.json")))
    ]


def _tool(told: dict[str, Json]) -> tuple[str, str]:
    given = told.get("input")
    if isinstance(given, dict):
        lines = [f"{key}: {_shown(each)}" for key, each in given.items()]
        return text_of(told, "name"), "\n".join(lines)
    return text_of(told, "name"), _shown(given)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def content(path: Path) -> bytes:
    """Return the content of a file; nothing if it is not a plain file or too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    with open(fd, "rb") as file:
        try:
            data = file.read(READ_LIMIT + 1)
        except OSError:
            return b""
    return data if len(data) <= READ_LIMIT else b""


def _names(folder: Path) -> list[str]:
    try:
        return [each.name for each in os.scandir(folder) if not each.is_symlink()]
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _code(told: dict[str, Json]) -> int | None:
    code = told.get("exit_code")
    return code if isinstance(code, int) else None
