"""JSON that programs write down, line by line; whatever else stands there is passed over.

An agent can write to these files: nothing here raises on what is torn, huge or hostile.
"""

from __future__ import annotations

import json
import time

from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def objects(data: bytes, *marks: bytes) -> Iterator[dict[str, Json]]:
    """One per line; with marks, only of lines that hold one of them, as parsing takes time."""
    for line in data.split(b"\n"):
        if not line.startswith(b"{") or (marks and not any(mark in line for mark in marks)):
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # torn: its beginning is not in the tail, or its end not yet written
        if isinstance(entry, dict):
            yield entry


def table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def rows(value: Json) -> list[dict[str, Json]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def number(value: Json) -> int:
    plain = isinstance(value, int) and not isinstance(value, bool)
    return value if plain and 0 <= value < 1 << 53 else 0  # type: ignore[operator, return-value]


def one_line(words: str, limit: int = 300) -> str:
    joined = " ".join(words.split())
    return joined if len(joined) <= limit else joined[: limit - 1] + "…"


def iso(epoch: float) -> str:
    """In UTC with milliseconds: such texts sort as the times do. No calendar: the first of all."""
    try:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(epoch))
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{seconds}.{int(epoch % 1 * 1000):03d}Z"
