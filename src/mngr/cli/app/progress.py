"""Progress on a terminal: the number of copied files, and why a host does not start yet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from mngr.cli.app.output import warn
from mngr.cli.app.parser import Namespace

PAUSE = 0.1


class Copying:
    """Call it with the number of files so far; close it before anything else is written."""

    def __init__(self) -> None:
        self._shown = 0.0

    def __call__(self, count: int) -> None:
        now = time.monotonic()
        if now - self._shown >= PAUSE:
            self._shown = now
            self._write(f"\r{count} files copied")

    def close(self) -> None:
        if self._shown:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def waiting(args: Namespace) -> Callable[[str], None] | None:
    """Return a function that prints each new reason why a host does not start, on a terminal."""
    if args.quiet or not sys.stderr.isatty():
        return None
    said: list[str] = []

    def tell(reason: str) -> None:
        if reason not in said[-1:]:
            said.append(reason)
            warn(f"still waiting for the host: {reason}")

    return tell


def copying(args: Namespace) -> Copying | None:
    """Return a progress display on a terminal, unless an editor uses the terminal."""
    hidden = args.quiet or args.edit_message or not sys.stderr.isatty()
    return None if hidden else Copying()
