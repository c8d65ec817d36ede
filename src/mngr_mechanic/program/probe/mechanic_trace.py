"""Record the lines of a project that a process runs, for Python 3.9 and newer.

Each line is written when it first runs, because a process that loops forever is killed, and its
lines are the most useful ones.
"""

from __future__ import annotations

import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

    Note = Callable[[str, int], None]
    Trace = Callable[[FrameType, str, object], object]


class Tracer:
    """Notes each line once. A function whose lines have all been noted costs little."""

    def __init__(self, place: Callable[[str], str], note: Note) -> None:
        """`place` returns the path of a file in the project, or "" for other files."""
        self._place, self._note = place, note
        self._left: dict[CodeType, set[int]] = {}

    def start(self) -> None:
        threading.settrace(self._call)  # type: ignore[arg-type]
        sys.settrace(self._call)  # type: ignore[arg-type]

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)
        self._note = lambda path, line: None  # threads that still run keep their tracer

    def _call(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        code = frame.f_code
        if code not in self._left:
            self._left[code] = _lines(code) if self._place(code.co_filename) else set()
        return self._line(frame, event, argument) if self._left[code] else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Trace:
        left, line = self._left[frame.f_code], frame.f_lineno
        if line in left:
            left.discard(line)
            self._note(self._place(frame.f_code.co_filename), line)
        return self._line


def _lines(code: CodeType) -> set[int]:
    if hasattr(code, "co_lines"):
        return {line for *_, line in code.co_lines() if line}
    import dis  # in Python 3.9

    return {line for _, line in dis.findlinestarts(code)}


def opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)


def written(file: int, path: str, line: int) -> None:
    os.write(file, f"{line}\t{path}\n".encode("utf-8", "surrogateescape"))


def noted(path: str) -> Iterator[tuple[str, int]]:
    """Yield the lines that were written to a file; the last one may be torn."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for entry in file:
            line, tab, name = entry.rstrip("\n").partition("\t")
            if tab and line.isdigit():
                yield name, int(line)


def start(folder: str) -> Callable[[], None]:
    """Write the lines that this process runs to a file in `folder`; return how to stop."""
    import mechanic_places  # type: ignore[import-not-found]

    root = os.environ["MECHANIC_ROOT"]
    # Names sort by the time of the start; after a fork both processes write to one file.
    file = opened(os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}"))
    tracer = Tracer(
        lambda name: str(mechanic_places.place(name, root)),
        lambda path, line: written(file, path, line),
    )
    tracer.start()

    def stop() -> None:
        tracer.stop()
        os.close(file)

    return stop
