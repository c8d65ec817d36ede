"""What can go wrong with a machine behind ssh, beside what test_faults.py tries everywhere."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from shutil import which

import pytest

from tests.support.cli import Result, until
from tests.support.places import Boxes, ended, hang_up, reaching

ECHO = 'while IFS= read -r line; do echo "$line" >> heard.txt; done'


def result(running: subprocess.Popen[bytes], timeout: float = 150) -> Result:
    out, err = running.communicate(timeout=timeout)
    return Result([], running.returncode, out.decode(), err.decode())


def heard(boxes: Boxes) -> str:
    return boxes("exec", "foo", "cat heard.txt 2>/dev/null; :").ok().out


def test_messages_from_two_machines_do_not_mix(boxes: Boxes, tmp_path: Path) -> None:
    boxes.cli.create("foo@box1", "--", "sh", "-c", ECHO)
    other = reaching(boxes.lab, tmp_path / "other")
    other.env["MNGR__PROVIDERS__SSH__HOSTS"] = '["box1"]'
    try:
        texts = {cli: [f"{word} {n}" * 20 for n in range(3)] for cli, word in (
            (boxes.cli.controller_home, "one"), (other.controller_home, "two"),
        )}  # fmt: skip
        running = [
            cli.start("message", "foo", "-m", text)
            for cli in (boxes.cli, other)
            for text in texts[cli.controller_home]
        ]
        for each in running:
            result(each).ok()
        sent = sorted(text for each in texts.values() for text in each)
        until(lambda: sorted(heard(boxes).splitlines()) == sent, what="every line whole")
    finally:
        ended(other)


# A client that reports success and passes nothing on, once.
SWALLOWING = """#!/bin/sh
! rm {mark} 2>/dev/null || exit 0
exec {ssh} "$@"
"""


def test_a_reading_that_got_lost_is_repeated_and_a_command_is_not(
    boxes: Boxes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boxes.cli.create("foo@box1")
    mark, client = tmp_path / "swallow", tmp_path / "ssh"
    client.write_text(SWALLOWING.format(mark=mark, ssh=which("ssh")))
    client.chmod(0o755)
    monkeypatch.setitem(boxes.cli.env, "PATH", f"{tmp_path}:{boxes.cli.env['PATH']}")
    hang_up(boxes.cli)  # else ssh would not be started at all
    mark.touch()
    assert boxes.states() == {"foo": "RUNNING"}
    assert not mark.exists()
    hang_up(boxes.cli)
    mark.touch()
    boxes("exec", "foo", "echo once >> said").fails(5, "box1 did not answer")
    assert boxes("exec", "foo", "echo twice >> said; cat said").ok().out == "twice\n"


def test_a_home_that_may_not_be_written(boxes: Boxes) -> None:
    boxes.one.inside("chown", "root", boxes.one.home)
    try:
        refused = boxes("create", "foo@box1", "--no-connect", "--", "sleep", "100")
        refused.fails(1, "host box1", f"{boxes.one.home}/.mngr")
        assert boxes.states() == {}
    finally:
        boxes.one.inside("chown", boxes.one.user, boxes.one.home)
    boxes.cli.create("foo@box1")


def test_after_a_silence_the_connection_is_made_anew(boxes: Boxes) -> None:
    boxes.cli.create("foo@box1")
    hang_up(boxes.cli)
    assert boxes("exec", "foo", "echo again").ok().out == "again\n"


def late(boxes: Boxes, seconds: int, patience: int) -> None:
    boxes.cli.create("here")
    boxes.cli.create("foo@box1", "--", "sh", "-c", ECHO)
    rc = f"{boxes.one.home}/.bashrc"
    boxes.one.inside("sh", "-c", f"echo 'sleep {seconds}' >> {rc}")
    try:
        began = time.monotonic()
        told = boxes("list", "-S", f"hosts.timeout={patience}s").ok()
        assert time.monotonic() - began < seconds
        assert f"box1 did not answer within {patience} s" in told.err
        assert boxes.states("-S", f"hosts.timeout={patience}s")["here"] == "RUNNING"
        boxes("gc", "-S", f"hosts.timeout={patience}s", "-S", "trash.keep=0s").ok()
        more = ("-S", f"hosts.timeout={seconds * 3}s")
        slowly = boxes.cli("exec", *more, "foo", "echo slowly", timeout=300)
        assert slowly.ok().out == "slowly\n"
    finally:
        boxes.one.inside("sed", "-i", "$d", rc)
    assert boxes.states() == {"here": "RUNNING", "foo": "RUNNING"}


@pytest.mark.soak
def test_a_host_that_answers_late(boxes: Boxes) -> None:
    late(boxes, 7, 3)


@pytest.mark.soak
def test_a_host_that_answers_after_half_a_minute(boxes: Boxes) -> None:
    late(boxes, 30, 15)
