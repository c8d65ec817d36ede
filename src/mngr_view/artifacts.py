"""What runs of a test left, by its agent or by verification, and the agent's conversation.

An agent decides what lies there. Only plain files of a bounded size are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mngr.model.struct import Json
from mngr_e2e.artifacts import slug
from mngr_view.markup import decoded

READ_LIMIT = 4 << 20
RUNS, CASTS = 5, 6
"""The newest are shown."""


@dataclass(frozen=True)
class Command:
    text: str
    exit_code: int | None
    seconds: float


@dataclass(frozen=True)
class Recorded:
    """One run of the test."""

    name: str
    outcome: str
    seconds: float
    noop: bool
    block: str
    commands: tuple[Command, ...]
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
    """Newest first, and how many older ones there are."""
    home = folder / ".mngr-e2e"
    names = [name for name in _names(home) if _is_folder(home / name / slug(node_id))]
    shown = sorted(names, reverse=True)[:RUNS]
    return [_recorded(home / name / slug(node_id), name) for name in shown], len(names) - len(shown)


def _recorded(folder: Path, name: str) -> Recorded:
    told = _object(_json(folder / "result.json"))
    commands = [each for each in map(_object, _list(told.get("commands"))) if each.get("text")]
    return Recorded(
        name=name,
        outcome=_text(told.get("outcome")),
        seconds=_number(told.get("seconds")),
        noop=told.get("noop") is True,
        block=_text(told.get("block")),
        commands=tuple(
            Command(_text(each.get("text")), _code(each), _number(each.get("seconds")))
            for each in commands[:200]
        ),
        transcript=decoded(content(folder / "transcript.txt")),
        casts=tuple(_casts(folder)),
    )


def _casts(folder: Path) -> Sequence[Path]:
    names = sorted(name for name in _names(folder) if name.endswith(".cast"))
    return [folder / name for name in names if content(folder / name)][:CASTS]


def conversation(folder: Path) -> list[Spoken]:
    turns = [_object(each) for each in _list(_json(folder / "conversation.json"))]
    return [
        Spoken(
            who=_text(turn.get("type")),
            text=_text(turn.get("text")),
            time=_text(turn.get("time")),
            tools=tuple(_tool(each) for each in _list(turn.get("tools"))[:50]),
        )
        for turn in turns
    ]


def _tool(value: Json) -> tuple[str, str]:
    told = _object(value)
    given = told.get("input")
    if isinstance(given, dict):
        lines = [f"{key}: {_shown(each)}" for key, each in given.items()]
        return _text(told.get("name")), "\n".join(lines)
    return _text(told.get("name")), _shown(given)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def content(path: Path) -> bytes:
    """Nothing, where it is no plain file or too large."""
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


def _json(path: Path) -> Json:
    try:
        value: Json = json.loads(content(path) or b"null")
    except (ValueError, RecursionError):
        return None
    return value


def _names(folder: Path) -> list[str]:
    try:
        return [each.name for each in os.scandir(folder) if not each.is_symlink()]
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Json) -> float:
    known = isinstance(value, (int, float)) and -1e12 < value < 1e12
    return float(value) if known and isinstance(value, (int, float)) else 0.0


def _code(told: dict[str, Json]) -> int | None:
    code = told.get("exit_code")
    return code if isinstance(code, int) else None
