"""The bridge to sandboxes: what goes through it arrives exactly, and ends when it should."""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from mngr.hosts.modal.provider import ModalProvider
from mngr.settings.layers import Config
from tests.support.cli import Cli, lives, until
from tests.support.cloud import running
from tests.support.cloud.running import Cloud
from tests.support.places import on_cloud
from tests.support.screen import Screen


@dataclass
class Box:
    """A sandbox, reached as mngr reaches it."""

    cli: Cli
    handle: str

    def argv(self, *words: str, tty: bool = False) -> list[str]:
        provider = ModalProvider(Config(str(self.cli.controller_home), "", ()))
        return provider.argv(self.handle, words, tty=tty)

    def run(self, *words: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.argv(*words), input=input, env=self.cli.env, capture_output=True, timeout=60
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(self.argv(*words), env=self.cli.env, stdin=pipe, stdout=pipe)

    def text(self, script: str) -> str:
        return self.run("sh", "-c", script).stdout.decode().strip()


@pytest.fixture(scope="module")
def box(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with on_cloud(cloud, tmp_path_factory.mktemp("bridge") / "world") as cli:
        cli("host", "create", "box", "--provider", "modal").ok()
        found = cli("host", "list", "--format", "json").ok().json()["hosts"]
        yield Box(cli, next(each["id"] for each in found if each["name"] == "box"))


def test_bytes_and_codes_are_exact(box: Box) -> None:
    every = bytes(range(256)) * 3
    done = box.run("sh", "-c", "cat; printf '\\377\\0' >&2; exit 7", input=every)
    assert (done.stdout, done.stderr, done.returncode) == (every, b"\xff\0", 7)
    assert box.run("sh", "-c", "kill -9 $$").returncode == 137
    assert box.run("no-such-program").returncode == 127


@pytest.mark.parametrize(
    "words",
    [
        ("", "a b", "quo'te\"", "new\nline", "$HOME `x` \\", "größe"),
        (os.fsdecode(b"\xff\xfe raw"), "x"),
        ("x" * 100_000, "y"),
    ],
    ids=["odd", "bytes", "long"],
)
def test_words_arrive_as_they_are(box: Box, words: tuple[str, ...]) -> None:
    told = box.run("printf", "%s\\0", *words).stdout
    assert told == b"".join(os.fsencode(each) + b"\0" for each in words)
    assert box.text("ls -A /tmp | grep call-") == ""


def test_megabytes_go_both_ways(box: Box) -> None:
    data = os.urandom(1 << 20) * 24
    done = box.run("cat", input=data)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(data).digest()
    assert box.run("true", input=data).returncode == 0, "input that nobody reads"


def test_output_that_is_not_read_is_not_produced(box: Box) -> None:
    """Otherwise the bridge would hold it all."""
    script = "n=0; while [ $n -lt 900 ]; do head -c 65536 /dev/zero; n=$((n+1)); echo $n > /n; done"
    with box.start("sh", "-c", script) as process:
        seen: list[str] = []

        def stalled() -> bool:
            seen.append(box.text("cat /n"))
            return len(seen) > 3 and bool(seen[-1]) and len({*seen[-3:]}) == 1

        try:
            until(stalled, 30, "the writer's rest")
            assert int(seen[-1]) < 200
        except AssertionError:
            process.kill()
            raise
        assert process.stdout is not None
        assert len(process.stdout.read()) == 900 * 65536
    assert process.returncode == 0


def test_commands_run_side_by_side(box: Box) -> None:
    with ThreadPoolExecutor(16) as pool:
        told = list(pool.map(lambda n: box.text(f"cat; echo {n}"), range(16)))
    assert told == [str(number) for number in range(16)]


def test_a_command_whose_output_nobody_wants_ends(box: Box) -> None:
    words = " ".join(shlex.quote(each) for each in box.argv("yes"))
    script = f"{{ {words}; echo code $? >&2; }} | head -n 1"
    done = subprocess.run(["sh", "-c", script], env=box.cli.env, capture_output=True, timeout=30)
    assert (done.stdout, done.stderr) == (b"y\n", b"code 141\n")


LOOP = "trap 'echo ended >> /tmp/%s; exit 3' TERM INT; echo $$; while :; do sleep 0.05; done"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_the_command_ends_with_the_program_that_asked_for_it(box: Box, number: int) -> None:
    """A killed one says nothing: the bridge sees that it is gone."""
    with box.start("sh", "-c", LOOP % number) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().decode().strip()
        process.send_signal(number)
        assert process.wait(20) == (3 if number != signal.SIGKILL else -9)
    until(lambda: box.text(f"cat /tmp/{number}; ls /proc | grep -x {pid}") == "ended", what="it")


def test_a_tmux_server_outlives_the_command_that_started_it(box: Box) -> None:
    start = "tmux -S /tmp/outlives new-session -d 'sleep 1000'; echo started; sleep 1000"
    with box.start("sh", "-c", start) as process:
        assert process.stdout is not None and process.stdout.readline() == b"started\n"
        process.terminate()
        process.wait(20)
    assert "1 windows" in box.text("tmux -S /tmp/outlives ls")
    box.text("tmux -S /tmp/outlives kill-server")


def test_a_terminal_works_and_follows_the_size_of_ours(box: Box) -> None:
    script = "stty size; tty; read -r line; echo \"read $line\"; trap 'stty size' WINCH; "
    script += "trap 'echo interrupted; exit 5' INT; while :; do sleep 0.05; done"
    with Screen(box.cli) as screen:
        screen.type(shlex.join(box.argv("sh", "-c", script, tty=True)) + "; echo code $?")
        screen.shows("40 150\n/dev/pts/")
        screen.type("größe")
        screen.shows("read größe")
        screen.tmux("resize-window", "-x", "101", "-y", "31")
        screen.shows("31 101")
        screen.keys("C-c")
        screen.shows("interrupted", "code 5")
        screen.type("stty -a | grep -o ' echo '")  # our own terminal is as it was
        screen.shows("\n echo")


def test_exit_codes_that_modal_makes_up_are_no_answers(box: Box, cloud: Cloud) -> None:
    owner = running.owner(box.cli)
    cloud.order(owner, code=-1)
    done = box.run("true")
    assert (done.returncode, b"no exit code" in done.stderr) == (255, True)
    cloud.order(owner, code=137)
    assert box.run("true").returncode == 137
    # mngr's own calls end with a seal, and believe that.
    assert box.cli("host", "list", "--format", "json").ok().json()["hosts"][1]["state"] == "RUNNING"
    cloud.order(owner)


def test_a_new_bridge_takes_the_place_of_one_that_was_killed(box: Box) -> None:
    def bridges() -> list[int]:
        found = [Path(f"/proc/{pid}") for pid in box.cli.processes()]
        return [int(x.name) for x in found if b"modal.bridge" in (x / "cmdline").read_bytes()]

    (pid,) = bridges()
    with box.start("sleep", "1000") as process:
        until(lambda: "sleep" in box.text("ps -A -o args= | grep '^sleep 1000'"), what="it")
        os.kill(pid, signal.SIGKILL)
        assert process.wait(20) == 255
    # While it dies it may still take a connection, which then ends: that is another lost command.
    until(lambda: not lives(pid), what="the end of the bridge")
    began = time.monotonic()
    assert box.text("echo again") == "again"
    assert bridges() != [pid]
    assert time.monotonic() - began < 30
