"""A command in a sandbox, connected to the file descriptors of the requesting program."""

from __future__ import annotations

import asyncio
import os
import time

from mngr.errors import MngrError, Unreachable
from mngr.hosts.modal.service import CALL, within
from mngr.model.quoting import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    import modal
    from modal.container_process import ContainerProcess

HELD = 2.0
"""Seconds to keep reading after the command ended, if another process holds its pipes open."""
LIMIT = 60_000
"""Maximum bytes in the words of a command; the SDK refuses more than 65,536."""
PIPED = 4096
"""A pipe that can be written to takes this many bytes without blocking."""

# A second command finds the first by this nonce, because the SDK cannot send signals.
CALLED = '"$@"; exit $?'
# On a terminal, set its size first. This shell leads the session: if Ctrl-C ended it, the kernel
# would send HUP to the command. Unlike an ignored signal, an empty trap is not inherited.
SIZED = 'trap : INT QUIT HUP; stty rows "$1" cols "$2" 2> /dev/null; shift 2; "$@"; exit $?'

# Standard input: the nonce and the signal, or the nonce and the size. Find the command's shell by
# the nonce in its arguments, and signal all its descendants.
FIND = r"""
read -r nonce what
root=
for each in /proc/[0-9]*/cmdline; do
  if tr '\0' '\n' < "$each" 2> /dev/null | grep -qxF -- "$nonce"; then
    root=${each#/proc/}; root=${root%/cmdline}; break
  fi
done
[ -n "$root" ] || exit 0
"""
SIGNAL = (
    FIND
    + r"""
found=" $root " more=yes
while [ -n "$more" ]; do
  more=
  for each in /proc/[0-9]*/stat; do
    read -r line < "$each" 2> /dev/null || continue
    pid=${line%% *}; rest=${line##*) }; rest=${rest#* }; parent=${rest%% *}
    case $found in *" $pid "*) continue ;; esac
    case $found in *" $parent "*) found="$found$pid " more=yes ;; esac
  done
done
set -- $found
shift
[ $# -gt 0 ] || set -- "$root"
kill -s "$what" "$@"
"""
)
RESIZE = (
    FIND
    + r"""
tty=$(readlink "/proc/$root/fd/0")
case $tty in /dev/*) stty rows "${what%% *}" cols "${what##* }" < "$tty" ;; esac
"""
)


class Call:
    """One command, from its start to its exit code."""

    def __init__(self, sandbox: modal.Sandbox, argv: Sequence[str], term: str) -> None:
        self._sandbox, self._argv, self._term = sandbox, argv, term
        self._nonce = f"call-{os.urandom(8).hex()}"
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = False

    async def run(self, fds: tuple[int, int, int], size: tuple[str, str]) -> int:
        """Return the command's exit code, once its output was passed on."""
        process = await self._start(size)
        loop = asyncio.get_running_loop()
        feed = loop.create_task(_feed(fds[0], process))
        streams = [Stream(self, process.stdout, fds[1]), Stream(self, process.stderr, fds[2])]
        ending = loop.create_task(_ended(process))
        try:
            code = await self._code(ending, [each.task for each in streams])
            late = {each.task for each in streams if not each.task.done()}
            while late and not all(each.held() for each in streams if not each.task.done()):
                _, late = await asyncio.wait(late, timeout=HELD / 4)
        finally:
            tasks = [ending, feed, *(each.task for each in streams)]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if code < 0:
            raise Unreachable("Modal reported no exit code: the command was interrupted")
        return code

    async def _code(self, ending: asyncio.Task[int], reading: list[asyncio.Task[None]]) -> int:
        """Return the exit code; raise if the output breaks off (the SDK would wait forever)."""
        waiting: set[asyncio.Task[int] | asyncio.Task[None]] = {ending, *reading}
        while not ending.done():
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task is not ending and (error := task.exception()):
                    raise Unreachable(f"its output was interrupted: {error}")
        self._over = True
        return ending.result()

    async def _start(self, size: tuple[str, str]) -> ContainerProcess[bytes]:
        tty = bool(self._term)
        words = (
            ["sh", "-c", SIZED, self._nonce, *size] if tty else ["sh", "-c", CALLED, self._nonce]
        )
        words += await self._said()
        env: dict[str, str | None] = {"TERM": self._term} if tty else {}
        start = self._sandbox.exec.aio(*words, text=False, pty=tty, env=env)
        return await within(CALL, "start the command", start)

    async def _said(self) -> Sequence[str]:
        """Return the words, or a script that runs them if Modal would not accept them."""
        try:
            if sum(len(each.encode()) for each in self._argv) < LIMIT:
                return self._argv
        except UnicodeEncodeError:
            pass
        path = f"/tmp/.mngr-{self._nonce}"
        script = f'rm -f "$0"\nexec {join(self._argv)}\n'
        await self._aside(f"umask 077; cat > {path}", os.fsencode(script))
        return ["sh", path]

    async def _aside(self, script: str, text: bytes) -> None:
        """Run a short command in parallel with the main one."""
        start = self._sandbox.exec.aio("sh", "-c", script, text=False)
        process = await within(CALL, "start the command", start)
        process.stdin.write(text)
        process.stdin.write_eof()
        await within(CALL, "accept the input", process.stdin.drain.aio())
        await within(CALL, "end the command", process.wait.aio())

    def signal(self, number: str) -> None:
        self._spawn(SIGNAL, f"{self._nonce} {number}\n")

    def resize(self, rows: str, columns: str) -> None:
        self._spawn(RESIZE, f"{self._nonce} {rows} {columns}\n")

    def _spawn(self, script: str, text: str) -> None:
        if self._over:
            return
        task = asyncio.get_running_loop().create_task(self._aside(script, text.encode()))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it cannot be reached, and its purpose is gone

    async def settle(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Stream:
    """One output stream of a command, connected to a descriptor."""

    def __init__(self, call: Call, source: AsyncIterable[bytes], fd: int) -> None:
        self._call, self._source, self._fd = call, source, fd
        self.idle: float | None = time.monotonic()
        """The time of the last output; None while the local reader has not accepted it."""
        self.task = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        """Pass on the output; if the local reader is gone, send SIGPIPE to the command."""
        gone = False
        async for chunk in self._source:
            self.idle = None
            try:
                if not gone:
                    await _write(self._fd, chunk)
            except BrokenPipeError:
                gone = True
                self._call.signal("PIPE")
            self.idle = time.monotonic()

    def held(self) -> bool:
        """Return whether only a process that the command left behind keeps it open."""
        return self.idle is not None and time.monotonic() - self.idle > HELD


async def _write(fd: int, chunk: bytes) -> None:
    """Write as fast as the reader accepts; the descriptor is shared, so it stays blocking."""
    rest = memoryview(chunk)
    while rest:
        if await _ready(fd, write=True):
            rest = rest[os.write(fd, rest[:PIPED]) :]
        else:
            rest = rest[os.write(fd, rest) :]


async def _ended(process: ContainerProcess[bytes]) -> int:
    return int(await process.wait.aio())


def settled(waiting: asyncio.Future[None]) -> None:
    """Mark a descriptor as ready; it may be marked again before it is used."""
    if not waiting.done():
        waiting.set_result(None)


async def _ready(fd: int, *, write: bool = False) -> bool:
    """Wait for a descriptor; return False for a file, which is always ready."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()
    add, remove = (
        (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    )
    try:
        add(fd, settled, waiting)
    except PermissionError:
        return False
    try:
        await waiting
    finally:
        remove(fd)
    return True


async def _feed(fd: int, process: ContainerProcess[bytes]) -> None:
    """Send all input; a command that closes its input is not an error."""
    while True:
        await _ready(fd)
        data = os.read(fd, 1 << 18)
        try:
            if data:
                process.stdin.write(data)
            else:
                process.stdin.write_eof()
            await process.stdin.drain.aio()
        except (MngrError, ValueError, OSError):
            return
        except Exception:  # raised by the SDK for a command that has ended
            return
        if not data:
            return
