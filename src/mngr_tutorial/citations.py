"""Read which test cites which block, from test files that are parsed and never imported."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from mngr.errors import UsageError
from mngr_e2e import blocks
from mngr_e2e.artifacts import functions

TestKey = tuple[str, str]
"""A test file relative to the project, and the test's dotted name, as in `TestNotes.test_add`."""


@dataclass(frozen=True)
class Citation:
    """A test and a block that it cites."""

    test: TestKey
    line: int
    """The first line of the block's text."""
    block: str | None
    """None if it is not a plain string and cannot be compared."""


def read_citations(path: Path, named: str) -> list[Citation]:
    try:
        tree = ast.parse(path.read_bytes(), path.name)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as Python: {error}") from None
    return [
        Citation((named, name), line, text)
        for name, test in functions(tree)
        for line, text in blocks.cited(test)
    ]
