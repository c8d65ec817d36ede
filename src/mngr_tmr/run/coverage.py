"""Which lines each test runs: measured at the baseline, and kept beside the journal of the run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from mngr_tmr.run.clustering import Lines

NAME = "lines.json"
RANGES = re.compile(r"\d{1,7}(?:-\d{1,7})?")
MOST = 1_000_000
"""Lines of one test that are believed: code under test may claim any number of them."""

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
    return frozenset(islice(_lines(files), MOST))


def by_file(files: Mapping[str, str]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {path: set() for path in files}
    for path, line in islice(_lines(files), MOST):
        found[path].add(line)
    return {path: frozenset(lines) for path, lines in found.items()}


def _lines(files: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    for path, text in files.items():
        for part in RANGES.findall(text):
            first, _, last = part.partition("-")
            yield from ((path, line) for line in range(int(first), int(last or first) + 1))
