"""The process that guard.py starts. It is run as a file, and loads nothing until it has to."""

from __future__ import annotations

import sys

BYE = "bye"


def main(source: str, run: str, home: str) -> None:
    """First comes a line with the processes that are older, then notes, then perhaps a bye."""
    lines: list[str] = []
    for line in sys.stdin:
        if line.strip() == BYE:
            return  # at the word: a child that pytest forked may hold the pipe for longer
        lines.append(line)
    older, *notes = lines or [""]
    sys.path.insert(0, source)
    from mngr_e2e.commands import aftermath

    aftermath.settle(run, home, frozenset(older.split()), notes)


if __name__ == "__main__":
    main(*sys.argv[1:])
