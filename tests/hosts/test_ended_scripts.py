"""Scripts of mngr on a host that are ended in the middle, as a command that takes too long is."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mngr.hosts.base import CommandFailed, HostRef
from mngr.hosts.remote import END
from mngr.hosts.shell import ShellHost
from tests.support.cli import until

AGENT = "agent-" + "0" * 32


class Here(ShellHost):
    """This machine, where one program never ends."""

    def __init__(self, base: Path, program: str) -> None:
        self.ref = HostRef(id="host-1", name="here", provider="test")
        self.home, self.socket, self.base = str(base / "home"), str(base / "socket"), base
        (base / "home").mkdir()
        (base / "tmp").mkdir()
        (base / program).write_text(f"#!/bin/sh\necho $$ > {base}/pid.new\n{WAIT}\n")
        (base / program).chmod(0o755)

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        path = f"PATH={self.base}:{os.environ['PATH']}"
        return ["env", path, f"TMPDIR={self.base}/tmp", f"BASE={self.base}", *argv]

    def end_script(self) -> None:
        pid = self.base / "pid"
        until(pid.exists, what="the program")
        os.killpg(os.getpgid(int(pid.read_text())), signal.SIGTERM)

    def left(self) -> list[Path]:
        return [*self.base.glob("tmp/*"), *self.base.glob("home/.put.*")]


WAIT = 'mv "$BASE/pid.new" "$BASE/pid"; exec sleep 1000'


def test_ended_while_files_are_written(tmp_path: Path) -> None:
    host = Here(tmp_path, "tar")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(host.put, {f"{host.home}/file": (b"text", 0o600)})
        host.end_script()
        with pytest.raises(CommandFailed):
            done.result(60)
    until(lambda: not host.left(), 10, "the removal of temporary files")


def test_ended_while_agents_are_read(tmp_path: Path) -> None:
    host = Here(tmp_path, "tail")
    folder = tmp_path / "home" / "agents" / AGENT
    folder.mkdir(parents=True)
    (folder / "agent.1.json").write_text("{}")
    (folder / "transcript").write_text("text")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(host.read)
        host.end_script()
        with pytest.raises(CommandFailed):
            done.result(60)
    until(lambda: not host.left(), 10, "the removal of temporary files")


@pytest.mark.parametrize("nonce", ["", "\n"])
def test_a_command_is_not_ended_for_want_of_a_nonce(nonce: str) -> None:
    assert ended_by(nonce) == []


def test_a_late_command_is_ended_by_its_nonce() -> None:
    nonce = os.urandom(8).hex()
    words = ["sh", "-c", "read -r line", nonce]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as late:
        assert ended_by(nonce) == [late.pid]
        late.communicate(b"\n")


def ended_by(nonce: str) -> list[int]:
    """Return the process groups that END would end; `kill` only prints them."""
    script = f'kill() {{ echo "${{4#-}}"; }}\n{END}'
    done = subprocess.run(["sh", "-c", script], input=nonce, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]
