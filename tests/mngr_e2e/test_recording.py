"""Recordings are complete, however they end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mngr_e2e import E2eSession
from mngr_e2e.commands import recording, tree
from mngr_e2e.redaction import Redactor
from tests.mngr_e2e.project import Project
from tests.support.cli import until

pytestmark = pytest.mark.skipif(not shutil.which("asciinema"), reason="needs asciinema")


def events(cast: Path) -> list[Any]:
    """Every line is JSON, the first one a header."""
    header, *rest = [json.loads(line) for line in cast.read_text().splitlines()]
    assert header["version"] == 2
    return rest


def said(cast: Path) -> str:
    return "".join(data for _, kind, data in events(cast) if kind == "o")


def test_a_recording_shows_what_a_person_would_see(e2e: E2eSession) -> None:
    program = e2e.record("stty size; read name; echo hello $name", columns=90, rows=20, name="ask")
    program.wait_for_output("20 90")
    program.type("you\r")
    program.wait_for_output("hello you")
    assert program.wait() == 0
    assert "hello you\r\n" in said(e2e.artifacts / "ask.cast")
    assert "# recorded in ask.cast\n" in e2e.transcript.text


def test_two_recordings_of_one_name_are_two_files(e2e: E2eSession) -> None:
    for _ in range(2):
        e2e.record("true", name="same").wait()
    assert {path.name for path in e2e.artifacts.glob("*.cast")} == {"same.cast", "same-2.cast"}


def test_stop_keeps_all_that_was_shown(e2e: E2eSession) -> None:
    program = e2e.record("seq 1000; echo all; cat", name="many")
    program.wait_for_output("all\r\n")
    program.stop()
    assert said(e2e.artifacts / "many.cast").endswith("1000\r\nall\r\n")


def test_without_asciinema_nothing_is_recorded(e2e: E2eSession) -> None:
    with pytest.raises(recording.NotInstalled, match="require asciinema"):
        e2e.record("true", env={"PATH": "/nowhere"})


def test_a_torn_recording_keeps_its_whole_events(tmp_path: Path) -> None:
    cast = tmp_path / "x.cast"
    cast.write_text('{"version": 2}\n[0.1, "o", "key hunter2"]\n[0.2, "o", "\n[0.3, "o", "to')
    assert recording.tidy(cast, Redactor({"KEY_SECRET": "hunter2"}))
    assert said(cast) == "key [KEY_SECRET]"
    cast.write_text('{"versi')
    assert not recording.tidy(cast, Redactor({}))
    assert not cast.exists()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


CONNECT = """
    def test_connect(e2e: E2eSession) -> None:
        command = "sh -c 'echo $$ > {folder}/connected.pid; echo inside; exec cat'"
        env = {{"MNGR_CONNECT_ARGV": command, "MNGR_AGENT_NAME": "bob"}}
        result = e2e.run("mngr-e2e-connect", env=env, timeout=90)
        expect(result).to_succeed()
        expect(e2e.artifacts / "connect-bob.cast").eventually(60).to_contain("inside")
        {then}
"""


def test_connect_returns_when_it_records_and_is_ended_with_the_test(
    project: Project, tmp_path: Path
) -> None:
    project.test(CONNECT.format(folder=tmp_path, then=""))
    done = project.pytest("-W", "error")
    assert done.returncode == 0, done.stdout
    assert project.result()["casts"] == ["connect-bob.cast"]
    (folder,) = project.folders
    assert said(folder / "connect-bob.cast") == "inside\r\n"
    assert not list(folder.glob("*.pid"))
    assert not tree.alive(int((tmp_path / "connected.pid").read_text()))


def test_an_agent_that_mngr_connects_to_is_recorded(e2e: E2eSession) -> None:
    setting = "-S commands.create.connect_command=mngr-e2e-connect"
    program = "sh -c 'echo shown by the agent; exec cat'"
    result = e2e.run(f"mngr {setting} create bob --transfer none -- {program}")
    assert result.exit_code == 0, result.stderr
    cast = e2e.artifacts / "connect-bob.cast"
    until(lambda: "shown by the agent" in cast.read_text(), 60, "the agent's screen is recorded")
    e2e.run("mngr destroy bob --force")


def test_connect_outside_a_test_says_what_is_missing() -> None:
    argv = [sys.executable, "-m", "mngr_e2e.connect"]
    done = subprocess.run(argv, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("mngr-e2e-connect: E2E_CASTS is not set;")


def test_the_end_of_a_test_keeps_all_that_was_shown(project: Project) -> None:
    project.test("""
        def test_much(e2e: E2eSession) -> None:
            e2e.record("seq 300000; echo all; exec cat", name="much").wait_for_output("all")
    """)
    done = project.pytest()
    assert done.returncode == 0, done.stdout
    (folder,) = project.folders
    assert said(folder / "much.cast").endswith("\r\n300000\r\nall\r\n")


def test_a_program_that_ignores_everything_is_ended_and_its_recording_kept(
    project: Project, tmp_path: Path
) -> None:
    project.test(f"""
        def test_stubborn(e2e: E2eSession) -> None:
            loop = "while :; do sleep 0.05; done"
            e2e.record(
                f"trap '' HUP TERM INT; echo $$ > {tmp_path}/pid; echo here; {{loop}}"
            ).wait_for_output("here")
    """)
    began = time.monotonic()
    done = project.pytest()
    assert done.returncode == 0, done.stdout
    assert time.monotonic() - began < 90
    assert not tree.alive(int((tmp_path / "pid").read_text()))
    (folder,) = project.folders
    assert said(folder / "recording-1.cast") == "here\r\n"


def test_a_killed_pytest_leaves_a_valid_recording(project: Project, tmp_path: Path) -> None:
    project.test(f"""
        import signal
        def test_long(e2e: E2eSession) -> None:
            e2e.redact("told-late")
            tui = "echo shown $MY_TOKEN; printf told-; echo late; exec cat"
            e2e.record(tui, env={{"MY_TOKEN": "tok-12345"}}, name="tui").wait_for_output("late")
            open("{tmp_path}/ready", "w").close()
            signal.pause()
    """)
    running = project.started()
    until((tmp_path / "ready").exists, 30, "the recorded program is ready")
    (folder,) = project.folders
    recorder = int((folder / "tui.pid").read_text())
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    until(lambda: not tree.alive(recorder), 60)  # its terminal hung up
    shown = "shown [MY_TOKEN]\r\n[secret]\r\n"
    until(lambda: said(folder / "tui.cast") == shown, 60)
    until(lambda: not (folder / "tui.pid").exists(), 60)
