"""Commands: exact bytes in order, and an end within a known time."""

from __future__ import annotations

import os
import shlex
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mngr_e2e.commands import process as process_module
from mngr_e2e.commands import tree
from mngr_e2e.commands.process import STDERR, STDOUT, Process, Start
from mngr_e2e.commands.results import Chunk
from tests.support.cli import until


def start(command: str, cwd: Path, number: int = 1) -> Start:
    env = {"PATH": os.environ["PATH"]}
    mark = f"/test{os.getpid()}.{number}/"  # another worker's are not ours to end
    return Start(command, env, str(cwd), mark, before=tree.snapshot())


def ignore(_chunk: Chunk) -> None:
    return None


def finished(what: Start, timeout: float = 20) -> Process:
    process = Process(what, ignore)
    process.finish(timeout)
    return process


def timed_out(what: Start, folder: Path) -> Process:
    """Its time is over as soon as it has written all it writes: a busy machine takes longer."""
    process = Process(what, ignore)
    until(lambda: pids_in(folder), 60, f"{what.command} got there")
    began = time.monotonic()
    process.finish(0)
    assert time.monotonic() - began < 30
    return process


def pids_in(folder: Path) -> list[int]:
    """A file may be there before its content is."""
    return [int(text) for path in folder.glob("*.pid") if (text := path.read_text())]


def test_output_is_the_exact_bytes_of_each_stream(tmp_path: Path) -> None:
    every = bytes(range(256))
    (tmp_path / "bytes").write_bytes(every)
    process = finished(start("cat bytes; cat bytes bytes >&2; exit 7", tmp_path))
    assert process.output(STDOUT) == every
    assert process.output(STDERR) == every * 2
    assert process.exit_code == 7


def test_a_missing_final_newline_stays_missing(tmp_path: Path) -> None:
    assert finished(start("printf 'a\\nb'", tmp_path)).output(STDOUT) == b"a\nb"


def test_fifty_megabytes_arrive_whole_on_both_streams(tmp_path: Path) -> None:
    script = "import sys; open(int(sys.argv[1]), 'wb').write(b'x' * 50_000_000)"
    python = shlex.join([sys.executable, "-c", script])
    process = finished(start(f"{python} 1 & {python} 2; wait", tmp_path), 60)
    assert len(process.output(STDOUT)) == len(process.output(STDERR)) == 50_000_000


def test_streams_are_interleaved_as_they_arrive_with_their_times(tmp_path: Path) -> None:
    for name in "ab":  # one each: who comes again may still meet the last visitor
        os.mkfifo(tmp_path / name)
    opened: list[float] = []

    def open_gate(chunk: Chunk) -> None:
        """It says the next only when we have the last."""
        opened.append(time.monotonic())
        if chunk.data != b"c\n":
            (tmp_path / chunk.data.decode().strip()).write_text("go\n")

    command = "echo a; read x < a; echo b >&2; read x < b; echo c"
    process = Process(start(command, tmp_path), open_gate)
    process.finish(60)
    assert [(chunk.stream, chunk.data) for chunk in process.chunks] == [
        (STDOUT, b"a\n"),
        (STDERR, b"b\n"),
        (STDOUT, b"c\n"),
    ]
    arrived = [process.began + chunk.at for chunk in process.chunks]
    moments = [time for pair in zip(arrived, opened, strict=True) for time in pair]
    assert moments == sorted(moments)


def test_input_larger_than_a_pipe_is_given_whole(tmp_path: Path) -> None:
    data = bytes(range(256)) * 8_000
    assert finished(replace(start("cat", tmp_path), stdin=data)).output(STDOUT) == data


def test_a_command_need_not_read_its_input(tmp_path: Path) -> None:
    process = finished(replace(start("exec true", tmp_path), stdin=b"x" * 5_000_000))
    assert process.exit_code == 0
    assert process.seconds < 19


def test_without_input_there_is_none_to_wait_for(tmp_path: Path) -> None:
    assert finished(start("cat", tmp_path)).exit_code == 0


def test_a_signal_gives_the_code_a_shell_would_give(tmp_path: Path) -> None:
    assert finished(start("kill -9 $$", tmp_path)).exit_code == 137


def test_a_terminal_is_the_controlling_one_and_has_a_size(tmp_path: Path) -> None:
    command = "test -t 0 && test -t 2 && stty size </dev/tty && printf end"
    process = finished(replace(start(command, tmp_path), pty=True, columns=100, rows=30))
    assert process.output(STDOUT) == b"30 100\r\nend"


def test_what_is_typed_on_a_terminal_is_read_as_a_line(tmp_path: Path) -> None:
    what = replace(start("read line; echo got $line", tmp_path), pty=True, stdin=b"hello\r")
    assert b"got hello\r\n" in finished(what).output(STDOUT)


def test_a_background_child_that_holds_stdout_is_not_awaited(tmp_path: Path) -> None:
    began = time.monotonic()
    process = finished(start("sleep 100 & echo $! > held.pid; echo said", tmp_path))
    assert process.output(STDOUT) == b"said\n"
    assert (process.exit_code, process.timed_out) == (0, False)
    assert time.monotonic() - began < 60
    process.end()
    assert not any(map(tree.alive, pids_in(tmp_path)))


def test_what_was_said_before_the_end_is_read_however_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_module, "AFTER_EXIT", -1.0)
    process = Process(start("sleep 1000 & echo said; echo oops >&2", tmp_path), ignore)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    process.finish(60)
    assert (process.output(STDOUT), process.output(STDERR)) == (b"said\n", b"oops\n")
    process.end()


STUBBORN = 'trap "" TERM HUP INT; echo $$ > stubborn.pid; while :; do sleep 0.05; done'
ORPHAN = "(setsid sh -c 'echo $$ > orphan.pid; sleep 100' >/dev/null 2>&1 &)"
LOST = "(env -i setsid sh -c 'echo $$ > lost.pid; sleep 100' >/dev/null 2>&1 &)"
BARE = "env -i PATH=$PATH setsid sh -c 'echo $$ > bare.pid; sleep 100' & wait"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo $$ > plain.pid; sleep 100", id="plain"),
        pytest.param("sleep 100 & echo $! > child.pid; wait", id="a child that holds the pipes"),
        pytest.param("setsid sh -c 'echo $$ > setsid.pid; sleep 100' & wait", id="setsid"),
        pytest.param(f"{ORPHAN}; sleep 100", id="setsid and orphaned, without the pipes"),
        pytest.param(BARE, id="setsid and without the environment"),
        pytest.param(f"{LOST}; sleep 100", id="setsid, orphaned and without the environment"),
        pytest.param(STUBBORN, id="it ignores SIGTERM"),
        pytest.param(f"setsid sh -c '{STUBBORN}' & wait", id="setsid and it ignores SIGTERM"),
    ],
)
def test_a_timeout_ends_the_whole_tree_in_bounded_time(tmp_path: Path, command: str) -> None:
    what = start(f"echo before; {command}", tmp_path)
    process = timed_out(what, tmp_path)
    assert (process.timed_out, process.exit_code) == (True, 124)
    assert process.output(STDOUT) == b"before\n"
    assert not [pid for pid in pids_in(tmp_path) if tree.alive(pid)]


def test_what_a_command_says_when_it_is_told_to_end_is_kept(tmp_path: Path) -> None:
    told = "trap 'echo bye; exit 0' TERM; echo up; echo $$ > up.pid; while :; do sleep 0.02; done"
    process = timed_out(start(told, tmp_path), tmp_path)
    assert process.output(STDOUT) == b"up\nbye\n"


def test_a_timeout_leaves_other_commands_alone(tmp_path: Path) -> None:
    other = Process(start("sleep 100", tmp_path, 11), ignore)
    finished(start("sleep 100", tmp_path, 1), timeout=0.1)
    assert tree.alive(other.pid)
    other.end()
    other.close()
    assert not tree.alive(other.pid)


def test_nothing_stays_open_afterwards(tmp_path: Path) -> None:
    def one_of_each() -> None:
        finished(start("echo a; echo b >&2", tmp_path))
        finished(replace(start("cat", tmp_path), stdin=b"x"))
        finished(replace(start("echo", tmp_path), pty=True))

    one_of_each()
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        one_of_each()
    assert len(os.listdir("/dev/fd")) == before
