"""Sessions over a connection that ssh holds open: the client's side of its protocol.

This process cannot reach the hosts' network. So what it runs there goes over the connection that a
command of mngr has left open, and never over an ssh of its own.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.errors import TimedOut, Unreachable
from mngr.hosts import sessions, spawn
from mngr.hosts.ssh import SshHost
from tests.support.places import Boxes, hang_up

HELLO = struct.pack(">3I", 8, 1, 4)
OPENED = struct.pack(">4I", 12, 0x80000006, 0, 7)
EXITED = struct.pack(">4I", 12, 0x80000004, 7, 3)
MEGABYTE = 1 << 20


AS_USER = """
import os, sys
from mngr.errors import MngrError
from mngr.hosts.ssh import control_folder
os.umask(0)
os.setuid(int(sys.argv[1]))
try:
    print(control_folder("/home"))
except MngrError as error:
    print(error)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")
def test_nobody_else_can_own_the_folder_of_connections() -> None:
    user = 900_000_000 + os.getpid()
    shared = Path(f"/tmp/mngr-{user}")

    def told() -> str:
        words = [sys.executable, "-c", AS_USER, str(user)]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    try:
        made = Path(told())
        assert [stat.S_IMODE(each.stat().st_mode) for each in (shared, made)] == [0o700, 0o700]
        shutil.rmtree(shared)
        shared.mkdir()
        shared.chmod(0o777)
        assert told() == f"{shared} belongs to another user"
    finally:
        shutil.rmtree(shared, ignore_errors=True)


@pytest.fixture
def host(boxes: Boxes) -> SshHost:
    boxes.cli.create("foo@box1")
    config = boxes.cli.env["MNGR__PROVIDERS__SSH__CONFIG"]
    return SshHost("box1", str(boxes.cli.controller_home), config)


def test_bytes_code_and_input_over_an_open_connection(host: SshHost) -> None:
    data = os.urandom(5 * MEGABYTE)
    done = host.run(["sh", "-c", "cat; printf late >&2; exit 7"], input=data, timeout=60)
    assert (done.code, done.stdout, done.stderr) == (7, data, b"late")
    assert host.run(["printf", "%s", "a  b*\n'\""], timeout=60).stdout == b"a  b*\n'\""


def test_output_that_follows_the_exit_code_is_kept(host: SshHost) -> None:
    """sshd sends the exit code at once, and the output of what the command left behind later."""
    words = ["sh", "-c", "{ sleep 0.1; echo late; } & echo early"]
    done = spawn.run(
        ["false"], timeout=60, instead=lambda fds: host.session(words, fds, timeout=60)
    )
    assert (done.code, done.stdout) == (0, b"early\nlate\n")


def test_many_at_once_keep_their_own_output(host: SshHost) -> None:
    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(lambda n: host.run(["echo", str(n)], timeout=60).stdout, range(120)))
    assert told == [b"%d\n" % number for number in range(120)]


def test_the_language_goes_along_as_ssh_is_told(
    boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Path(boxes.cli.env["MNGR__PROVIDERS__SSH__CONFIG"])
    config.write_text(f"{config.read_text()}Host *\n  SendEnv LC_PAPER MNGR_SECRET\n")
    boxes.cli.create("foo@box1")
    for name in ("LC_PAPER", "LC_NAME", "MNGR_SECRET"):
        monkeypatch.setenv(name, name.lower())
    host = SshHost("box1", str(boxes.cli.controller_home), str(config))
    done = host.run(["sh", "-c", 'echo "$LC_PAPER $LC_NAME $MNGR_SECRET"'], timeout=60)
    assert done.stdout == b"lc_paper  \n"


def test_without_a_connection_there_is_no_session(host: SshHost, boxes: Boxes) -> None:
    hang_up(boxes.cli)
    with pytest.raises(Unreachable, match="box1"):
        host.run(["true"], timeout=30)


def test_a_changed_configuration_is_another_connection(boxes: Boxes) -> None:
    """The old connection is open still, and leads to the host that had this name before."""
    boxes.cli.create("foo@box1")
    config = Path(boxes.cli.env["MNGR__PROVIDERS__SSH__CONFIG"])
    text = config.read_text()
    assert boxes("exec", "foo@box1", "hostname").ok().out == "box1\n"
    one, two = boxes.one, boxes.two
    config.write_text(
        text.replace(one.address, "?")
        .replace(two.address, one.address)
        .replace("?", two.address)
        .replace(f"User {one.user}\n", "User ?\n")
        .replace(f"User {two.user}\n", f"User {one.user}\n")
        .replace("User ?\n", f"User {two.user}\n")
    )
    assert boxes("exec", "foo@box1", "hostname").code != 0
    config.write_text(text)
    assert boxes("exec", "foo@box1", "hostname").ok().out == "box1\n"


@contextmanager
def answering(data: bytes, *, stays: bool = False) -> Iterator[str]:
    """A socket at which each client gets these bytes, and then the end or nothing more."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        path = f"{folder}/s"
        server.bind(path)
        server.listen()

        def serve() -> None:
            client, _ = server.accept()
            with client, suppress(ConnectionError):
                client.sendall(data)
                if not stays:
                    client.shutdown(socket.SHUT_WR)
                while client.recv(1 << 16):
                    pass

        thread = Thread(target=serve)
        thread.start()
        try:
            yield path
        finally:
            thread.join(10)


def session(path: str, timeout: float = 10) -> sessions.SshSession | None:
    with open(os.devnull, "r+b") as null:
        return sessions.opened(path, "true", [null.fileno()] * 3, timeout)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(struct.pack(">3I", 8, 1, 5), id="another version"),
        pytest.param(HELLO, id="only a greeting"),
        pytest.param(HELLO + struct.pack(">4I", 12, 0x80000003, 0, 0), id="refused"),
        pytest.param(struct.pack(">I", 1 << 31), id="too large"),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="another protocol"),
    ],
)
def test_an_answer_that_opens_no_session(answer: bytes) -> None:
    with answering(answer) as path:
        assert session(path) is None


def test_no_socket_and_no_listener_are_no_session(tmp_path: Path) -> None:
    assert session(str(tmp_path / "none")) is None
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "stale"))
    assert session(str(tmp_path / "stale")) is None


def test_silence_is_a_deadline() -> None:
    with answering(HELLO, stays=True) as path, pytest.raises(TimedOut):
        session(path, timeout=0.2)


def test_greetings_may_have_extensions_and_a_session_ends_with_its_code() -> None:
    extended = struct.pack(">4I", 20, 1, 4, 4) + b"info" + struct.pack(">I", 0)
    with answering(extended + OPENED + EXITED) as path:
        opened = session(path)
        assert opened
        while opened.status() is None:
            pass
        assert opened.status() == 3


@given(st.binary(max_size=64), st.booleans())
def test_no_answer_can_do_harm(data: bytes, greeted: bool) -> None:
    with answering((HELLO if greeted else b"") + data) as path:
        opened = session(path)
        while opened and opened.status() is None:
            pass
