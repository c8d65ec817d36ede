"""What is left to do when pytest was killed: end its commands, clean its recordings."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from mngr_e2e.commands import recording, tree
from mngr_e2e.redaction import Redactor

HANG_UP = 1.0


def settle(run: str, home: str, older: frozenset[str], notes: list[str]) -> None:
    """`run` is what marks the commands of the whole run, and `home` what their homes begin with."""
    limit = tree.limit(run)

    def find() -> set[int]:
        found = tree.marked([run, home], older) | tree.limited(limit, tree.OF_RUN, older)
        return found - {os.getpid()}

    # A recorder sees its terminal hang up and completes its file: it must not be told to end.
    tree.until_gone(find, time.monotonic() + HANG_UP, time.sleep)
    tree.end(find, 1.0, time.sleep)
    for folder, redact in unfinished(notes).items():
        _clean(folder, redact)


def note(folder: Path, redact: Redactor | None) -> str:
    """What is to be known of a test; without a redactor, that it has ended in good order."""
    return json.dumps([str(folder), redact.known() if redact else None])


def unfinished(notes: list[str]) -> dict[Path, Redactor]:
    """By the folders of tests that had not ended."""
    found: dict[Path, Redactor] = {}
    for line in notes:
        try:
            folder, known = json.loads(line)
        except ValueError:  # it was killed while it told us
            continue
        if known is None:
            found.pop(Path(folder), None)
        else:
            found[Path(folder)] = Redactor.knowing(*known)
    return found


def _clean(folder: Path, redact: Redactor) -> None:
    try:
        for cast in recording.named(folder, ".cast"):
            recording.tidy(cast, redact)
        for path in recording.named(folder, ".pid"):
            path.unlink(missing_ok=True)
    except OSError:  # the folder is gone already
        return
