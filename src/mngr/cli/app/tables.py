"""Tables on a terminal: no line is wider than the terminal, and states are coloured."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

NARROWEST = 8
"""Columns that a shortened column keeps."""
COLOURS = {
    "CREATING": 36,
    "RUNNING": 32,
    "WAITING": 33,
    "DONE": 34,
    "STOPPED": 2,
    "FAILED": 31,
    "LOST": 31,
    "UNREACHABLE": 35,
}


def terminal_width() -> int:
    """Return the columns of the terminal, or 0 if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return 0
    try:
        return int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(1).columns
    except (OSError, ValueError):
        return 80


def coloured_state(text: str) -> str:
    """Return a padded state in its colour."""
    colour = COLOURS.get(text.strip())
    return f"\x1b[{colour}m{text}\x1b[0m" if colour is not None else text


def width_of(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(character: str) -> int:
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return the text, or its beginning with an ellipsis, in at most `width` columns."""
    if width_of(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…" if width > 0 else ""


def padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def fitted(widths: Sequence[int], total: int) -> list[int]:
    """Return widths whose columns, two blanks apart, fit into `total`; the widest shrink first.

    The first column has names, which users copy, so it shrinks last. If there are too many columns
    for the terminal, the last ones are dropped.
    """
    found = list(widths)
    over = sum(found) + 2 * (len(found) - 1) - total
    for start in (1, 0):
        while over > 0 and (rest := found[start:]):
            widest = max(rest)
            if widest <= NARROWEST:
                break
            at = start + rest.index(widest)
            second = max((w for i, w in enumerate(rest, start) if i != at), default=0)
            step = min(over, widest - max(min(second, widest - 1), NARROWEST))
            found[at] -= step
            over -= step
    while over > 0 and len(found) > 1:
        over -= found.pop() + 2
    return found
