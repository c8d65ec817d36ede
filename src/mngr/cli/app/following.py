"""Repeat until interrupted, or until the output is closed."""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")

HOME_AND_CLEAR = "\x1b[H\x1b[2J"


def again(seconds: float, show: Callable[[], int]) -> int:
    """Repeat the output: on a terminal in place, otherwise separated by blank lines."""
    redraw = sys.stdout.isatty()
    leave_with_reader()
    try:
        while True:
            if redraw:
                sys.stdout.write(HOME_AND_CLEAR)
            code = show()
            if code:
                return code
            sys.stdout.write("" if redraw else "\n")
            sys.stdout.flush()
            time.sleep(seconds)
    except KeyboardInterrupt:
        return 0


def for_ever(items: Iterable[T], show: Callable[[T], None]) -> None:
    """Show an endless row of things; Ctrl-C is the usual way out and no error."""
    leave_with_reader()
    try:
        for item in items:
            show(item)
    except KeyboardInterrupt:
        pass


def leave_with_reader() -> None:
    """End when the reader of stdout is gone, which a command without output would not notice."""
    import threading

    threading.Thread(target=_leave_with_reader, daemon=True).start()


def _leave_with_reader() -> None:
    import os
    import select

    poll = select.poll()
    poll.register(1, 0)  # errors only
    if poll.poll():
        os._exit(141)
