"""Which lines of the project a process runs: one file per process, one line for each.

A line is written when it is first seen and not at the end: a process that loops for ever is
killed, and just its lines are wanted.
"""

# What pytest and the tests hand over is anything.
# mypy: disallow-any-explicit=false
# ruff: noqa: ANN401
from __future__ import annotations

import os
import sys
import threading
import time
from types import FrameType
from typing import Any, Optional

import mechanic_places  # type: ignore[import-not-found]

_seen: set[tuple[str, int]] = set()
_file = -1
_root = ""


def start() -> None:
    """In a process of its own, from its first line on."""
    _open(os.environ["MECHANIC_TRACE"])
    threading.settrace(_call)
    sys.settrace(_call)


def begin(folder: str) -> None:
    """In a process that runs one test after another: this one's lines go to `folder`."""
    _seen.clear()
    _open(folder)
    threading.settrace(_call)
    sys.settrace(_call)


def end() -> None:
    global _file
    sys.settrace(None)
    threading.settrace(None)
    os.close(_file)
    _file = -1


def _open(folder: str) -> None:
    global _file, _root
    _root = os.environ["MECHANIC_ROOT"]
    # Names sort by the time of the start; after a fork both processes write to one file.
    name = f"{time.time_ns():020d}-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    _file = os.open(os.path.join(folder, name), flags, 0o600)


def _call(frame: FrameType, event: str, arg: Any) -> Optional[Any]:
    if not mechanic_places.place(frame.f_code.co_filename, _root):
        return None
    return _line(frame, event, arg)


def _line(frame: FrameType, event: str, arg: Any) -> Optional[Any]:
    place = (frame.f_code.co_filename, frame.f_lineno)
    if place not in _seen and _file >= 0:
        _seen.add(place)
        path = mechanic_places.place(place[0], _root)
        os.write(_file, f"{place[1]}\t{path}\n".encode("utf-8", "surrogateescape"))
    return _line
