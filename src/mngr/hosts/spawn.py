"""Run a program on this machine: exact bytes, always with a deadline, no process left behind.

It uses posix_spawn, because importing the subprocess module would double the time of `mngr list`.
"""

from __future__ import annotations

import os
import select
import time
from _thread import get_ident

from mngr.errors import MissingProgram, MngrError, TimedOut
from mngr.hosts.kept import Kept
from mngr.model.completed import Completed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol, TypeAlias, TypeVar

    T = TypeVar("T")
    U = TypeVar("U")

    class Running(Protocol):
        """A program that was started."""

        def status(self) -> int | None:
            """Return the exit code, as a shell would, if it has ended."""

        def end(self) -> None:
            """End it and what it started."""

        def leave(self, patience: float) -> int:
            """Wait this many seconds for it to end, then end it; return its exit code."""
else:
    import _signal as signal  # the module signal imports enum


Sink: TypeAlias = "Callable[[int, bytes], None]"
"""Called with 1 or 2, for stdout or stderr, and what was written there."""
HELD_PIPE = 0.3
"""How long to go on reading after the program ended, while a grandchild holds its pipes."""

_GIT_LOCATION = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")

_idle: dict[int, Callable[[], object]] = {}
"""By thread: what to do while the next program runs."""


def beside(main: Callable[[], T], work: Callable[[], object]) -> T:
    """Call `main` and return its result; call `work` while the first program of `main` runs.

    `work` imports modules that are used next, or starts a second program. If `main` starts no
    program, `work` is called after it; if `main` fails before that, `work` is not called.
    """
    _idle[get_ident()] = work
    try:
        result = main()
        _work()
        return result
    finally:
        _idle.pop(get_ident(), None)


def both(main: Callable[[], T], work: Callable[[], U]) -> tuple[T, U]:
    """Call both as `beside` does, and return both results."""
    done: list[U] = []
    result = beside(main, lambda: done.append(work()))
    return result, done[0]


def _work() -> None:
    if work := _idle.pop(get_ident(), None):
        work()


_interrupted = False


def interrupt() -> None:
    """End the programs of all threads; each call of `run` raises KeyboardInterrupt from now on.

    Ctrl-C reaches only the main thread, and the process does not exit before the others end.
    """
    global _interrupted
    _interrupted = True


def environment() -> dict[str, str]:
    """Return the environment without variables that would mislead git and tmux.

    A git hook or an outer tmux sets such variables. The agent's mark is dropped too: when an agent
    stops itself, mngr's scripts would count as its processes.
    """
    dropped = {*_GIT_LOCATION, "TMUX", "TMUX_PANE", "MNGR_AGENT_ID"}
    return {key: value for key, value in os.environ.items() if key not in dropped}


def run(
    argv: Sequence[str],
    *,
    input: bytes | None = None,
    timeout: float,
    env: Mapping[str, str] | None = None,
    sink: Sink | None = None,
    until: Callable[[], bool] | None = None,
    instead: Callable[[Sequence[int]], Running | None] | None = None,
) -> Completed:
    """Run to the end, or end all processes at the deadline and raise TimedOut.

    With a sink, output is passed on as it arrives, by file descriptor, and not kept. As soon as
    `until` is true, return without waiting for the rest: a client may stay alive while a remote
    process holds its pipes. If `instead` can run the command with these pipes, no process starts.
    """
    opened: list[int] = []
    try:
        stdin = _pipe(opened) if input is not None else (os.open(os.devnull, os.O_RDONLY), -1)
        opened.append(stdin[0])
        stdout, stderr = _pipe(opened), _pipe(opened)
        ends = (stdin[0], stdout[1], stderr[1])
        running = (instead and instead(ends)) or _Child(_spawn(argv, env, ends))
        for fd in ends:
            _close(fd, opened)
        kept = sink if isinstance(sink, Kept) else Kept(argv[0])
        pipes = _Pipes((stdin[1], stdout[0], stderr[0]), input, opened, sink or kept)
        status = _converse(argv, running, pipes, timeout, until)
        return Completed(code=status, stdout=kept.stdout, stderr=kept.stderr)
    finally:
        for fd in set(opened):
            os.close(fd)


def call(argv: Sequence[str], env: Mapping[str, str] | None = None) -> int:
    """Run with the current terminal and pipes; return the exit code as a shell would."""
    pid = _spawn(argv, env, (0, 1, 2), own_session=False)
    interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = signal.signal(signal.SIGTERM, lambda number, _: os.kill(pid, number))
    try:
        while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
            os.kill(os.getpid(), signal.SIGSTOP)  # the program suspended only itself, as ssh does
            os.kill(pid, signal.SIGCONT)
        return _shell_code(status)
    finally:
        signal.signal(signal.SIGINT, interrupted)
        signal.signal(signal.SIGTERM, ended)


def _pipe(opened: list[int]) -> tuple[int, int]:
    pair = os.pipe()
    opened.extend(pair)
    return pair


def _close(fd: int, opened: list[int]) -> None:
    opened[:] = [each for each in opened if each != fd]
    os.close(fd)


def _spawn(
    argv: Sequence[str],
    env: Mapping[str, str] | None,
    fds: tuple[int, int, int],
    own_session: bool = True,
) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(fds)]
    variables = environment() if env is None else env
    try:
        # Python ignores SIGPIPE; a child that inherits this would report write errors instead.
        # Its own session has no terminal, so no program in it can stop to ask a question.
        return os.posix_spawnp(
            argv[0], list(argv), variables, file_actions=actions, setsigdef=[signal.SIGPIPE],
            setsid=own_session,
        )  # fmt: skip
    except FileNotFoundError:
        raise MissingProgram(f"{argv[0]} is not installed or not on PATH") from None
    except OSError as error:
        raise MngrError(f"{argv[0]} cannot be run: {error.strerror}") from None


class _Pipes:
    """The pipes of a program: the input it has not read yet, and the sink of its output."""

    def __init__(
        self, fds: tuple[int, int, int], input: bytes | None, opened: list[int], sink: Sink
    ) -> None:
        self._stdin, self._stdout, stderr = fds
        self._opened, self._sink = opened, sink
        self.waiting = {self._stdout, stderr}
        """The pipes that have not reached their end."""
        self._pending = memoryview(input or b"")
        self._poll = select.poll()
        for fd in self.waiting:
            self._poll.register(fd, select.POLLIN)
        if input is not None:
            os.set_blocking(self._stdin, False)
            self._poll.register(self._stdin, select.POLLOUT)

    def exchange(self, milliseconds: float) -> None:
        """Read and write what is possible, after waiting for it at most this long."""
        for fd, _ in self._poll.poll(milliseconds):
            if fd == self._stdin:
                self._feed()
            elif chunk := os.read(fd, 1 << 16):
                self._sink(1 if fd == self._stdout else 2, chunk)
            else:
                self._poll.unregister(fd)
                self.waiting.discard(fd)

    def _feed(self) -> None:
        try:
            self._pending = self._pending[os.write(self._stdin, self._pending[: 1 << 16]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not read the rest of the input
            self._pending = memoryview(b"")
        if not self._pending:
            self._poll.unregister(self._stdin)
            _close(self._stdin, self._opened)
            self._stdin = -1


def _converse(
    argv: Sequence[str],
    running: Running,
    pipes: _Pipes,
    timeout: float,
    until: Callable[[], bool] | None,
) -> int:
    """Pass on the output until the program has ended; return its exit code."""
    deadline = time.monotonic() + timeout
    status, ended_at = None, 0.0
    try:
        _work()
        while pipes.waiting:
            if _interrupted:
                raise KeyboardInterrupt
            now = time.monotonic()
            if now >= deadline:
                raise TimedOut(f"{argv[0]} did not finish within {timeout:g} s")
            # Even if this process is late, the output of the program is still in the pipes.
            last = status is not None and now - ended_at > HELD_PIPE
            if until is not None and until():
                status = running.leave(HELD_PIPE) if status is None else status
                break
            # Usually both pipes reach their end first; the short sleeps detect a program that ended
            # while a process it started still holds them.
            pipes.exchange(0 if last else min(50.0, (deadline - now) * 1000))
            if last:
                break
            if status is None and pipes.waiting:
                status = running.status()
                ended_at = time.monotonic()
        if status is None:
            status = _wait(running, deadline, argv, timeout)
    finally:
        if status is None:  # the deadline, Ctrl-C, too much output or a bug: end everything
            running.end()
    return status


class _Child:
    """A process started here, the leader of its own group."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def status(self) -> int | None:
        status = _reaped(self._pid)
        return None if status is None else _shell_code(status)

    def end(self) -> None:
        end_group(self._pid)

    def leave(self, patience: float) -> int:
        until = time.monotonic() + patience
        while (code := self.status()) is None and time.monotonic() < until:
            time.sleep(0.001)
        if code is None:
            self.end()
        return code or 0


def _reaped(pid: int) -> int | None:
    done, status = os.waitpid(pid, os.WNOHANG)
    return status if done else None


def _wait(running: Running, deadline: float, argv: Sequence[str], timeout: float) -> int:
    """Wait for a program that has closed its pipes; nearly always it has also ended."""
    nap = 0.00005
    while (status := running.status()) is None:
        if time.monotonic() >= deadline:
            raise TimedOut(f"{argv[0]} did not finish within {timeout:g} s")
        time.sleep(nap)
        nap = min(nap * 2, 0.05)
    return status


def end_group(pid: int) -> None:
    """Send TERM, after half a second KILL, to the group and descendants outside it; then reap."""
    strays = _descendants(pid)
    for number, patience in ((signal.SIGTERM, 0.5), (signal.SIGKILL, 5.0)):
        _signal_all(pid, strays, number)
        until = time.monotonic() + patience
        while time.monotonic() < until:
            if _reaped(pid) is not None:
                _signal_all(pid, strays, signal.SIGKILL)
                return
            time.sleep(0.01)


def _signal_all(pid: int, strays: list[int], number: int) -> None:
    _signal_group(pid, number)
    for stray in strays:
        try:
            os.kill(stray, number)
        except (ProcessLookupError, PermissionError):
            continue


def _descendants(pid: int) -> list[int]:
    """Return all descendants from /proc, if it exists: setsid hides them from killpg."""
    children: dict[int, list[int]] = {}
    processes = os.listdir("/proc") if os.path.isdir("/proc/self") else []
    for entry in filter(str.isdigit, processes):
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # not a process, or it has ended
        children.setdefault(parent, []).append(int(entry))
    found = [pid]
    for each in found:
        found += children.get(each, ())
    return found[1:]


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has already ended


def _shell_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
