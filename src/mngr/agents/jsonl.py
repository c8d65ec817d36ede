"""Read files that programs write, mostly JSON line by line; anything else in them is skipped.

Agents can write to these files, so nothing here raises on torn, huge or malicious content.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

from mngr.model.struct import Json

LIMIT = 4 << 20

# Functions for awk, for hosts that have only POSIX tools: the value of a key in a line of JSON.
# Inside a JSON string a quote is never bare, so `"name":` is always a key.
AWK = r"""
  function word(line, name) {
    if (!match(line, "\"" name "\":\"[^\" ]+\"")) return ""
    return substr(line, RSTART + length(name) + 4, RLENGTH - length(name) - 5)
  }
  function count(line, name) {
    if (!match(line, "\"" name "\":[0-9]+")) return 0
    return substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0
  }"""


def read(path: str) -> bytes:
    """Return the content of a file; b"" if it is missing, too large or not a regular file."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LIMIT:
            return b""
        with open(path, "rb") as file:
            return file.read(LIMIT)
    except OSError:
        return b""


def load(path: str) -> dict[str, Json]:
    """Return the JSON object in a file; {} if there is none."""
    try:
        return table(json.loads(read(path) or b"{}"))
    except (ValueError, RecursionError):
        return {}


def objects(data: bytes, *marks: bytes) -> Iterator[dict[str, Json]]:
    """Yield one object per line; with marks, only of lines with one of them: parsing is slow."""
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
    """Return the value if it is an object, else {}. The functions below do the same."""
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
    """Return UTC with milliseconds, sortable as text; "" for a time outside the calendar."""
    try:
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(epoch))
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{seconds}.{int(epoch % 1 * 1000):03d}Z"
