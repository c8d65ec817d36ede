"""Progress on a terminal: the number of copied files, and why a host does not start yet."""

from __future__ import annotations

import sys
import time

from mngr.cli.app.output import warn
from mngr.cli.app.parser import Namespace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE = 0.1


class LastLine:
    """The last line of a terminal; clear it before anything else is written."""

    def __init__(self, quiet: bool) -> None:
        self.hidden = quiet or not sys.stderr.isatty()

    def show(self, text: str) -> None:
        if not self.hidden:
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    def clear(self) -> None:
        self.show("\x1b[K")


class Copying(LastLine):
    """Call it with the number of files so far."""

    _shown = 0.0

    def __call__(self, count: int) -> None:
        now = time.monotonic()
        if now - self._shown >= PAUSE:
            self._shown = now
            self.show(f"{count} files copied")


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
    line = Copying(args.quiet or args.edit_message)
    return None if line.hidden else line
