"""End the commands of pytest, even if pytest is killed.

A small process, outlive.py, waits at the end of a pipe that only pytest holds. If the pipe closes
without a final line, pytest was killed; the process then ends all commands of the run and removes
secrets from recordings. One such process serves a whole run, and no command waits for it.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from mngr_e2e.commands import outlive, recording, tree
from mngr_e2e.redaction import Redactor

SOURCE = str(Path(__file__).parents[2])
HANG_UP = 1.0


class Guard:
    """pytest's end of the pipe."""

    def __init__(self, homes: Path) -> None:
        """Start the process. `homes` contains the tests' homes: a daemon may keep only its HOME."""
        self.mark = f"/{secrets.token_hex(6)}/"
        # Isolated and without site: it starts as fast as a bare interpreter.
        argv = [sys.executable, "-I", "-S", outlive.__file__, SOURCE]
        argv += [self.mark, f"HOME={homes}{os.sep}"]
        null = subprocess.DEVNULL
        # In its own session, so that signals to pytest's process group do not reach it.
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True
        )
        assert self._process.stdin is not None
        self._pipe = self._process.stdin
        self.pid, self.pipe = self._process.pid, self._pipe.fileno()
        self._tell(" ".join(tree.snapshot()))

    def note(self, folder: Path, redact: Redactor | None) -> None:
        """Note that a test begins, has a new secret, or has ended; see the function."""
        self._tell(note(folder, redact))

    def _tell(self, line: str) -> None:
        with suppress(BrokenPipeError):  # without a guard the tests still run
            self._pipe.write(f"{line}\n".encode())
            self._pipe.flush()

    def close(self) -> int:
        """Write the final line and return the exit code of the process."""
        self._tell(outlive.BYE)
        with suppress(BrokenPipeError):
            self._pipe.close()
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


def note(folder: Path, redact: Redactor | None) -> str:
    """Return the note about a test; without a redactor it means that the test has ended."""
    return json.dumps([str(folder), redact.known() if redact else None])


def unfinished(notes: list[str]) -> dict[Path, Redactor]:
    """Return the redactors of tests that have not ended, by the folder of their artifacts."""
    found: dict[Path, Redactor] = {}
    for line in notes:
        try:
            folder, known = json.loads(line)
        except ValueError:  # pytest was killed while writing it
            continue
        if known is None:
            found.pop(Path(folder), None)
        else:
            found[Path(folder)] = Redactor.knowing(*known)
    return found


def settle(run: str, home: str, older: frozenset[str], notes: list[str]) -> None:
    """End the commands of a killed run, by its mark and its homes, and clean its recordings."""
    limit = tree.limit(run)

    def find() -> set[int]:
        found = tree.marked([run, home], older) | tree.limited(limit, tree.OF_RUN, older)
        return found - {os.getpid()}

    # A recorder completes its file when its terminal hangs up; a signal would prevent that.
    tree.until_gone(find, time.monotonic() + HANG_UP, time.sleep)
    tree.end(find, 1.0, time.sleep)
    for folder, redact in unfinished(notes).items():
        with suppress(OSError):  # the folder has been removed
            for cast in recording.named(folder, ".cast"):
                recording.tidy(cast, redact)
            for path in recording.named(folder, ".pid"):
                path.unlink(missing_ok=True)
