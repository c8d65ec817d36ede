"""Run one shell command, read its output as it arrives, and end it within a known time."""

from __future__ import annotations

import fcntl
import os
import pty
import selectors
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mngr_e2e.commands import tree
from mngr_e2e.commands.results import Chunk

READ = 1 << 20
PIPE = 1 << 20  # the largest size for ordinary users; with 64 KiB, 50 MB take twice as long
AFTER_EXIT = 0.5
GRACE = 1.0
COLUMNS, ROWS = 80, 24
STDOUT, STDERR = 1, 2
TIMED_OUT = 124
# A session leader that opens a terminal gets it as its controlling terminal. So no code runs
# between fork and exec, which would be slow, and unsafe with threads. The terminal is opened for
# reading and writing, because tmux writes to its client's stdin.
ON_TERMINAL = 'exec <>"$1" >&0 2>&1; shift; ' + tree.LIMITED


@dataclass(frozen=True)
class Start:
    """A command to run, with its directory, environment and terminal."""

    command: str
    env: Mapping[str, str]
    cwd: str
    mark: str
    shell: str = "/bin/sh"
    stdin: bytes | None = None
    pty: bool = False
    columns: int = COLUMNS
    rows: int = ROWS
    before: frozenset[str] = frozenset()
    """Older processes, which cannot be its children: a search skips them."""


class Process:
    """A running command. Only one thread may call `finish`."""

    def __init__(self, start: Start, on_chunk: Callable[[Chunk], None]) -> None:
        self.start = start
        self.chunks: list[Chunk] = []
        self.timed_out = False
        self.seconds = 0.0
        self._on_chunk = on_chunk
        self._unsent = memoryview(start.stdin or b"")
        self._selector = selectors.DefaultSelector()
        self._open = 0
        self._pidfd = -1
        self._writing = threading.Lock()
        self.began = time.monotonic()
        self._popen = self._on_pty() if start.pty else self._on_pipes()
        self.pid = self._popen.pid
        self._watch_exit()

    # --- starting ---------------------------------------------------------------------------

    def _spawn(self, argv: list[str], *files: int) -> subprocess.Popen[bytes]:
        env = {**self.start.env, tree.MARK: self.start.env.get(tree.MARK, "") + self.start.mark}
        stdin, stdout, stderr = files
        return subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=env,
            cwd=self.start.cwd,
            start_new_session=True,
        )

    @property
    def _limit(self) -> int:
        return tree.limit(self.start.env.get(tree.MARK, ""), self.start.mark)

    def _on_pipes(self) -> subprocess.Popen[bytes]:
        argv = ["/bin/sh", "-c", tree.LIMITED, str(self._limit)]
        argv += [self.start.shell, "-c", self.start.command]
        stdin = subprocess.DEVNULL if self.start.stdin is None else subprocess.PIPE
        popen = self._spawn(argv, stdin, subprocess.PIPE, subprocess.PIPE)
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._read_from(popen.stdout.fileno(), STDOUT)
        self._read_from(popen.stderr.fileno(), STDERR)
        if popen.stdin is not None:
            self._write_to(popen.stdin.fileno())
        return popen

    def _on_pty(self) -> subprocess.Popen[bytes]:
        master, slave = pty.openpty()
        size = struct.pack("HHHH", self.start.rows, self.start.columns, 0, 0)
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)
        argv = ["/bin/sh", "-c", ON_TERMINAL, str(self._limit), os.ttyname(slave)]
        argv += [self.start.shell, "-c", self.start.command]
        null = subprocess.DEVNULL
        popen = self._spawn(argv, null, null, null)
        self._master, self._slave = master, slave
        self._read_from(master, STDOUT)
        if self.start.stdin is not None:
            self.write(self.start.stdin)
        return popen

    def _read_from(self, fd: int, stream: int) -> None:
        os.set_blocking(fd, False)
        if hasattr(fcntl, "F_SETPIPE_SZ") and not self.start.pty:
            try:
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE)
            except OSError:  # the user's pipe memory is used up: slower, but correct
                pass
        self._open += 1
        self._selector.register(fd, selectors.EVENT_READ, lambda: self._read(fd, stream))

    def _write_to(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._selector.register(fd, selectors.EVENT_WRITE, lambda: self._send(fd))

    def _watch_exit(self) -> None:
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            self._selector.register(self._pidfd, selectors.EVENT_READ, self._popen.poll)

    # --- streams ----------------------------------------------------------------------------

    def _read(self, fd: int, stream: int) -> None:
        try:
            data = os.read(fd, READ)
        except BlockingIOError:
            return
        except OSError:  # EIO: the last process on the terminal has ended
            data = b""
        if not data:
            self._selector.unregister(fd)
            self._open -= 1
            return
        chunk = Chunk(stream, time.monotonic() - self.began, data)
        self.chunks.append(chunk)
        self._on_chunk(chunk)

    def _send(self, fd: int) -> None:
        try:
            self._unsent = self._unsent[os.write(fd, self._unsent[:READ]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # not every program reads all its input
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._selector.unregister(fd)
            assert self._popen.stdin is not None
            self._popen.stdin.close()

    def write(self, data: bytes) -> None:
        """Type into the command's terminal."""
        with self._writing:
            view = memoryview(data)
            deadline = time.monotonic() + 10
            while view and time.monotonic() < deadline:
                try:
                    view = view[os.write(self._master, view) :]
                except BlockingIOError:  # the program has not read what was typed before
                    time.sleep(0.01)
                except OSError:
                    return

    def output(self, stream: int) -> bytes:
        return b"".join([chunk.data for chunk in self.chunks if chunk.stream == stream])

    # --- ending -----------------------------------------------------------------------------

    @property
    def exited(self) -> bool:
        return self._popen.poll() is not None

    @property
    def exit_code(self) -> int:
        if self.timed_out:
            return TIMED_OUT
        code = self._popen.returncode
        return 128 - code if code < 0 else code

    def _step(self, seconds: float) -> None:
        """Handle the next events; wait for them for at most `seconds`."""
        longest = 60.0 if self._pidfd >= 0 or self._popen.returncode is not None else 0.02
        for key, _ in self._selector.select(max(min(seconds, longest), 0)):
            key.data()

    def finish(self, timeout: float) -> None:
        """Read until the command has ended; after `timeout` seconds, end it."""
        try:
            self._finish(timeout)
        except BaseException:  # Ctrl-C, or a time limit of the test: end the command too
            self.end(grace=0.2)
            raise
        finally:
            self.close()

    def _finish(self, timeout: float) -> None:
        deadline = self.began + timeout
        while not self.exited and (left := deadline - time.monotonic()) > 0:
            self._step(left)
        if not self.exited:
            self.timed_out = True
            self.end()
        self.seconds = time.monotonic() - self.began
        self._drain()

    def _drain(self) -> None:
        """Read the rest for AFTER_EXIT seconds: a background child may hold the pipes forever."""
        self._forget_exit()
        self._close_slave()
        deadline = time.monotonic() + AFTER_EXIT
        while self._open and (left := deadline - time.monotonic()) > 0:
            self._step(left)
        if self._open:  # the command's output is still in the pipes, even after the deadline
            self._step(0)

    def end(self, grace: float = GRACE, meanwhile: Callable[[float], None] | None = None) -> None:
        """End the command and all its descendants; `meanwhile` waits if another thread reads."""
        wait = meanwhile or (time.sleep if self._closed else self._step)
        tree.end(self.members, grace, wait)
        deadline = time.monotonic() + 1
        while not self.exited and time.monotonic() < deadline:
            wait(0.01)

    def members(self) -> set[int]:
        before = self.start.before
        found = tree.marked([self.start.mark], before) | tree.descendants(self.pid, before)
        found |= tree.limited(self._limit, ignore=before)
        return found if self.exited else found | {self.pid}

    def _forget_exit(self) -> None:
        if self._pidfd >= 0:
            self._selector.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    _closed = False
    _master = _slave = -1

    def _close_slave(self) -> None:
        if self._slave >= 0:
            os.close(self._slave)
            self._slave = -1

    def close(self) -> None:
        self._forget_exit()
        self._close_slave()
        self._closed = True
        self._selector.close()
        with self._writing:
            if self._master >= 0:
                os.close(self._master)
                self._master = -1
        for file in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if file is not None:
                file.close()
