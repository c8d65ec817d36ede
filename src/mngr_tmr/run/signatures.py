"""Failures that look the same have the same signature, and probably the same cause. Pure."""

from __future__ import annotations

import hashlib
import re

# What differs between two failures with one cause, and what stands for it.
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
    """The first lines that say something, without numbers, paths, times and identities."""
    told = [line.strip() for line in message.splitlines() if line.strip()]
    text = "\n".join(told[:LINES])[:600]
    for pattern, stand_in in SAME:
        text = pattern.sub(stand_in, text)
    return text.strip()


def signature(stage: str, exception: str, message: str, frame: str) -> str:
    """One line a person can read, with a few digits that tell it from its neighbours."""
    text = normalise(message)
    whole = "\0".join((stage, exception, text, frame))
    mark = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:8]
    where = f" in {frame}" if frame else ""
    return f"{stage}: {exception}: {text[:100]}{where} [{mark}]"
