"""If pytest is killed, its commands are ended all the same.

A small process waits at the end of a pipe that only pytest holds. When the pipe closes without a
good-bye, pytest is gone; whatever carries its mark is then ended, and recordings are cleaned of
secrets. One such process serves a whole run, and no command waits for it.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

from mngr_e2e.commands import aftermath, outlive, tree
from mngr_e2e.redaction import Redactor

SOURCE = str(Path(__file__).parents[2])


class Guard:
    def __init__(self, homes: Path) -> None:
        """`homes`: the folder that the homes of tests are in, for daemons that kept only that."""
        self.mark = f"/{secrets.token_hex(6)}/"
        # Isolated and without site: it starts in the time of a bare interpreter.
        argv = [sys.executable, "-I", "-S", outlive.__file__, SOURCE]
        argv += [self.mark, f"HOME={homes}{os.sep}"]
        self._process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # what is sent to pytest's process group is not for it
        )
        self._tell(" ".join(tree.snapshot()))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def pipe(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def watch(self, folder: Path, redact: Redactor) -> None:
        """A test begins, or has a new secret."""
        self._tell(aftermath.note(folder, redact))

    def leave(self, folder: Path) -> None:
        """A test has ended, and its artifacts are as they should be."""
        self._tell(aftermath.note(folder, None))

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:  # somebody ended it: there is no guard, which harms no test
            pass

    def close(self) -> int:
        """All sessions have ended in good order."""
        self._tell(outlive.BYE)
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            return self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
