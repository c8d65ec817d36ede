"""The signature of a failure: the same for failures that look the same. Pure."""

from __future__ import annotations

import hashlib
import re

# What may differ between two failures with one cause, and its replacement.
SAME = (
    (re.compile(r"<[A-Za-z]\w* [^<>]*>"), "<OBJECT>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "0x#"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "HEX"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?"), "TIME"),
    (re.compile(r"(?:/[\w.@+-]+){2,}"), "PATH"),
    (re.compile(r"line \d+"), "line #"),
    (re.compile(r"\d+(?:\.\d+)?"), "#"),
    (re.compile(r"\s+"), " "),
)
LINES = 3


def normalise(message: str) -> str:
    """Return the first lines of a message, without numbers, paths, times and ids."""
    told = [line.strip() for line in message.splitlines() if line.strip()]
    text = "; ".join(told[:LINES])[:600]
    for pattern, stand_in in SAME:
        text = pattern.sub(stand_in, text)
    return text.strip()


def signature(stage: str, exception: str, message: str, frame: str) -> str:
    """Return one readable line, with a hash that makes it unique."""
    text = normalise(message)
    whole = "\0".join((stage, exception, text, frame))
    mark = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:8]
    where = f" in {frame}" if frame else ""
    shown = text if len(text) <= 100 else f"{text[:99]}…"
    return f"{stage}: {exception}: {shown}{where} [{mark}]"
