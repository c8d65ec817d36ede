"""Run programs while this process gets no CPU time."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import FrameType

import pytest

from mngr.errors import MissingProgram
from mngr.hosts import spawn


class Starved:
    """A tracer that stops this process at two lines, as if other processes used the CPU.

    First before it checks whether the program has ended, until it has. Then after that, for longer
    than a pipe is read that another process holds.
    """

    def __init__(self) -> None:
        self.ended = self.late = False

    def __call__(self, frame: FrameType, event: str, arg: object) -> Starved | None:
        name = frame.f_code.co_name
        if name == "_reaped" and not self.ended:
            os.waitid(os.P_PID, frame.f_locals["pid"], os.WEXITED | os.WNOWAIT)
            self.ended = True
        if name != "_converse":
            return None
        if event == "line" and frame.f_locals.get("ended_at") and not self.late:
            time.sleep(spawn.HELD_PIPE + 0.1)
            self.late = True
        return self


def test_output_is_read_however_late_we_are() -> None:
    starved = Starved()
    script = "sleep 0.2; printf out; printf err >&2"
    sys.settrace(starved)
    try:
        done = spawn.run(["sh", "-c", script], timeout=20)
    finally:
        sys.settrace(None)
    assert starved.late
    assert (done.code, done.stdout, done.stderr) == (0, b"out", b"err")


def test_an_error_of_tar_has_its_cause() -> None:
    done = spawn.run(["tar", "-cf", "-", "no-such-file"], timeout=20)
    assert "no-such-file" in done.complaint


def test_work_beside_a_program_is_done_while_it_runs(tmp_path: Path) -> None:
    gate = str(tmp_path / "gate")
    os.mkfifo(gate)
    read = spawn.beside(
        lambda: spawn.run(["cat", gate], timeout=20).stdout,
        lambda: Path(gate).write_text("in time"),
    )
    assert read == b"in time"


def test_work_beside_no_program_is_done_and_beside_a_failure_forgotten() -> None:
    done: list[str] = []
    assert spawn.beside(lambda: 7, lambda: done.append("after")) == 7
    with pytest.raises(MissingProgram):
        spawn.beside(
            lambda: spawn.run(["nosuch-program"], timeout=20), lambda: done.append("never")
        )
    spawn.run(["true"], timeout=20)
    assert done == ["after"]
