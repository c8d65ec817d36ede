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

from mngr_e2e import tree
from mngr_e2e.artifacts import write_whole

HEADER_TIMEOUT = 10.0
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
    pids = {pid for path in folder.glob("*.pid") if (pid := _recorder(path, ignore))}
    tree.send(pids, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while any(tree.alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    for path in folder.glob("*.pid"):
        path.unlink(missing_ok=True)


def _recorder(path: Path, ignore: frozenset[str]) -> int:
    """A process older than the test is not its recorder: the number was used again."""
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return 0
    return int(text) if text.isdigit() and text not in ignore else 0


def tidy(cast: Path, redact: Callable[[str], str]) -> bool:
    """Keep the whole events, without secrets. False if there was not even a header."""
    lines = cast.read_bytes().split(b"\n")[:-1]  # what follows the last newline was cut off
    events = [event for line in lines if (event := _event(line)) is not None]
    if not events or not isinstance(events[0], dict):
        cast.unlink()
        return False
    clean = [_without_secrets(event, redact) for event in events]
    write_whole(cast, "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in clean))
    return True


def _without_secrets(event: Event, redact: Callable[[str], str]) -> Event:
    """Only inside the texts: the file must stay JSON, whatever a pattern matches."""
    if isinstance(event, dict):
        return {key: _text(value, redact) for key, value in event.items()}
    return [_text(value, redact) for value in event]


def _text(value: object, redact: Callable[[str], str]) -> object:
    return redact(value) if isinstance(value, str) and len(value) > 1 else value


def _event(line: bytes) -> Event | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict | list) else None
