"""Which lines each test runs: measured at the baseline, and kept beside the journal of the run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mngr_tmr.clustering import Lines

NAME = "lines.json"
RANGES = re.compile(r"\d{1,7}(?:-\d{1,7})?")
LONGEST = 100_000

Reached = Mapping[str, Mapping[str, str]]
"""test -> path -> its lines, as 1-3,7"""


def keep(folder: Path, reached: Reached) -> None:
    fresh = folder / f"{NAME}.new"
    fresh.write_text(json.dumps(reached))
    fresh.replace(folder / NAME)


def load(folder: Path) -> dict[str, Lines]:
    """Nothing where nothing was measured."""
    try:
        kept = json.loads((folder / NAME).read_bytes())
        return {str(test): decoded(files) for test, files in kept.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def decoded(files: Mapping[str, str]) -> Lines:
    return frozenset((path, line) for path, text in files.items() for line in _numbers(text))


def _numbers(text: str) -> Iterator[int]:
    for part in RANGES.findall(text):
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first), int(first) + LONGEST) + 1)
