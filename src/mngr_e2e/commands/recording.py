"""Recordings: a command in its own terminal, under asciinema."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from mngr_e2e.artifacts import write_whole
from mngr_e2e.commands import tree
from mngr_e2e.redaction import Redactor

HEADER_TIMEOUT = 30.0
GRACE = 2.0
Event: TypeAlias = dict[str, object] | list[object]


class NotInstalled(Exception):
    """A program that the test requires is not installed."""


def rec(command: str, cast: Path, columns: int, rows: int, env: Mapping[str, str]) -> str:
    """Return the shell command that records another one."""
    program = shutil.which("asciinema", path=env.get("PATH"))
    if not program:
        raise NotInstalled("recordings require asciinema, which is not on PATH")
    size = f"--cols {columns} --rows {rows}"
    files = f"-c {shlex.quote(command)} {shlex.quote(str(cast))}"
    return f"exec {shlex.quote(program)} rec -q --overwrite {size} {files}"


def claim(folder: Path, name: str) -> Path:
    """Create and return a new file for a cast; two processes never get the same."""
    number = 0
    while True:
        number += 1
        path = folder / (f"{name}.cast" if number == 1 else f"{name}-{number}.cast")
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            return path
        except FileExistsError:
            continue


def named(folder: Path, end: str) -> list[Path]:
    """Return the files whose names have this end; Path.glob takes ten times as long."""
    return [folder / name for name in sorted(os.listdir(folder)) if name.endswith(end)]


def has_header(cast: Path) -> bool:
    try:
        with open(cast, "rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def await_header(cast: Path, alive: Callable[[], bool]) -> bool:
    """Wait for the recording to begin, and return whether it did."""
    deadline = time.monotonic() + HEADER_TIMEOUT
    while not has_header(cast):
        if not alive() or time.monotonic() > deadline:
            return has_header(cast)
        time.sleep(0.005)
    return True


def pid_file(cast: Path) -> Path:
    return cast.with_suffix(".pid")


def end_all(folder: Path, ignore: frozenset[str]) -> None:
    """End every recorder in the folder, and wait until it has completed its file.

    A recorder that gets TERM hangs up, so the program that it records detaches or ends. The process
    that writes the file must not get a signal, or the end of the recording would be lost.
    """
    files = named(folder, ".pid")
    if not files:
        return
    pids = {pid for path in files if (pid := _recorder(path, ignore))}
    tree.send(pids, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while any(tree.alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    for path in named(folder, ".pid"):
        path.unlink(missing_ok=True)


def _recorder(path: Path, ignore: frozenset[str]) -> int:
    """Return the recorder's id, or 0; a process older than the test has only the same number."""
    text = path.read_text().strip()
    return int(text) if text.isdigit() and text not in ignore else 0


def tidy(cast: Path, redact: Redactor) -> bool:
    """Keep complete events, without secrets. Return False if there is not even a header."""
    lines = cast.read_bytes().split(b"\n")[:-1]  # the last line may be incomplete
    events = [found for line in lines if (found := _event(line)) is not None]
    header = events[0] if events else None
    if not isinstance(header, dict):
        cast.unlink()
        return False
    clean = [_header(header, redact), *_without_secrets(events[1:], redact)]
    write_whole(cast, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in clean))
    return True


def _header(header: dict[str, object], redact: Redactor) -> dict[str, object]:
    """Return the header with redacted texts; the file stays JSON whatever a pattern matches."""
    return {
        key: redact(value) if isinstance(value, str) else value for key, value in header.items()
    }


def _without_secrets(events: list[Event], redact: Redactor) -> list[list[object]]:
    """Return the events without secrets, which may extend over several events."""
    whole = [event for event in events if isinstance(event, list) and len(event) == 3]
    for kind in {str(event[1]) for event in whole}:
        of_kind = [event for event in whole if event[1] == kind]
        texts = redact.pieces([str(event[2]) for event in of_kind])
        for event, text in zip(of_kind, texts, strict=True):
            event[2] = text
    return whole


def _event(line: bytes) -> Event | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None
