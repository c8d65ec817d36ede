"""Recordings: a command on a terminal of its own, under asciinema."""

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


class MissingProgram(Exception):
    """A program that the test needs is not installed."""


def rec(command: str, cast: Path, columns: int, rows: int, env: Mapping[str, str]) -> str:
    """The shell command that records another one."""
    program = shutil.which("asciinema", path=env.get("PATH"))
    if not program:
        raise MissingProgram("recordings need asciinema, which is not installed or not on PATH")
    size = f"--cols {columns} --rows {rows}"
    files = f"-c {shlex.quote(command)} {shlex.quote(str(cast))}"
    return f"exec {shlex.quote(program)} rec -q --overwrite {size} {files}"


def claim(folder: Path, name: str) -> Path:
    """A cast's name that nothing else has, also when two processes ask."""
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
    """Files by the end of their name; Path.glob costs ten times as much."""
    return [folder / name for name in sorted(os.listdir(folder)) if name.endswith(end)]


def has_header(cast: Path) -> bool:
    try:
        with open(cast, "rb") as file:
            return file.readline().endswith(b"\n")
    except FileNotFoundError:
        return False


def await_header(cast: Path, alive: Callable[[], bool]) -> bool:
    """Whether the recording began: from then on nothing is missed."""
    deadline = time.monotonic() + HEADER_TIMEOUT
    while not has_header(cast):
        if not alive() or time.monotonic() > deadline:
            return has_header(cast)
        time.sleep(0.005)
    return True


def pid_file(cast: Path) -> Path:
    return cast.with_suffix(".pid")


def end_all(folder: Path, ignore: frozenset[str]) -> None:
    """Let every recorder in the folder finish its file.

    A recorder that is told to end hangs up: what it recorded detaches or ends. The process that
    writes the file must not be told, or the last of the recording is lost.
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
    """A process older than the test is not its recorder: the number was used again."""
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return 0
    return int(text) if text.isdigit() and text not in ignore else 0


def tidy(cast: Path, redact: Redactor) -> bool:
    """Keep the whole events, without secrets. False if there was not even a header."""
    lines = cast.read_bytes().split(b"\n")[:-1]  # what follows the last newline was cut off
    events = [found for line in lines if (found := _event(line)) is not None]
    header = events[0] if events else None
    if not isinstance(header, dict):
        cast.unlink()
        return False
    clean = [_header(header, redact), *_without_secrets(events[1:], redact)]
    write_whole(cast, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in clean))
    return True


def _header(header: dict[str, object], redact: Redactor) -> dict[str, object]:
    """Only inside the texts: the file must stay JSON, whatever a pattern matches."""
    return {
        key: redact(value) if isinstance(value, str) else value for key, value in header.items()
    }


def _without_secrets(events: list[Event], redact: Redactor) -> list[list[object]]:
    """What is typed or printed comes in pieces of any size, and a secret may be in several."""
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
