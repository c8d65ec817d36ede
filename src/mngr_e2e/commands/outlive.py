"""The process that guard.py starts. It is run as a file, and imports as little as possible."""

from __future__ import annotations

import sys

BYE = "bye"


def main(source: str, run: str, home: str) -> None:
    """Read a line with the ids of older processes, then notes; settle unless BYE follows."""
    lines: list[str] = []
    for line in sys.stdin:
        if line.strip() == BYE:
            return  # at once: a child that pytest forked may hold the pipe for longer
        lines.append(line)
    older, *notes = lines or [""]
    sys.path.insert(0, source)
    from mngr_e2e.commands import guard

    guard.settle(run, home, frozenset(older.split()), notes)


if __name__ == "__main__":
    main(*sys.argv[1:])
