"""The bridge: one process per login that keeps the SDK, the connections and the request rate.

Run as `python -m mngr.hosts.modal.bridge HOME SOCKET`. Commands come from enter.py with their file
descriptors, everything else as requests in JSON. The bridge ends itself when it has been unused for
a while, like ssh's shared connections.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Sequence

from mngr import files
from mngr.errors import MngrError
from mngr.hosts.modal.hosting import Hosting
from mngr.hosts.modal.pump import Call, settled
from mngr.model.struct import Json

LINGER = 300.0
"""Seconds that the bridge keeps running after the last request."""
LOST = 255


class Bridge:
    """Listens on the socket until it has been unused for a while."""

    def __init__(self, home: str, path: str) -> None:
        self.hosting = Hosting(home)
        self._path = path
        self._active: set[asyncio.Task[None]] = set()
        self._used = True

    async def serve(self) -> None:
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        files.remove(f"{self._path}.new")  # left by a bridge that was killed at this point
        door.bind(f"{self._path}.new")
        door.listen(512)
        door.setblocking(False)
        os.rename(f"{self._path}.new", self._path)
        loop = asyncio.get_running_loop()
        accepting = loop.create_task(self._accept(door))
        guarding = loop.create_task(self.hosting.guard())
        linger = float(os.environ.get("MNGR_MODAL_LINGER", LINGER))
        while self._active or self._used:
            self._used = False
            await asyncio.sleep(linger)
        files.remove(self._path)
        if not os.stat(f"{self._path}.log").st_size:
            files.remove(f"{self._path}.log")
        accepting.cancel()
        guarding.cancel()

    async def _accept(self, door: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            made, _ = await loop.sock_accept(door)
            self._used = True
            task = loop.create_task(self._answer(made))
            self._active.add(task)
            task.add_done_callback(self._active.discard)

    async def _answer(self, made: socket.socket) -> None:
        made.setblocking(False)
        fds: list[int] = []
        try:
            message, fds = await _received(made)
            if len(fds) == 3:
                await self._exec(made, message, (fds[0], fds[1], fds[2]))
            elif message:
                await _told(made, json.dumps(await self._asked(message)).encode() + b"\n")
        except ConnectionError:
            pass  # the client has exited
        finally:
            for fd in fds:
                os.close(fd)
            made.close()

    async def _asked(self, message: bytes) -> dict[str, Json]:
        asked = json.loads(message)
        try:
            return {"answer": await self.hosting.perform(asked.pop("op"), asked)}
        except MngrError as error:
            kind = type(error).__name__
            return {"error": error.message, "hint": error.hint, "kind": kind}
        except Exception as error:  # a bug in mngr or the SDK: one line, and the log
            sys.stderr.write(f"{asked}: {error!r}\n")
            return {"error": f"modal: {error!r}", "hint": f"see {self._path}.log", "kind": ""}

    async def _exec(self, made: socket.socket, message: bytes, fds: tuple[int, int, int]) -> None:
        _, handle, rows, columns, term, *argv = os.fsdecode(message).split("\0")
        try:
            sandbox = await self.hosting.sandbox(handle)
            call = Call(sandbox, argv, term)
        except MngrError as error:
            await _told(made, _lost(error))
            return
        running = asyncio.create_task(call.run(fds, (rows, columns)))
        orders = asyncio.create_task(_orders(made, call))
        await asyncio.wait({running, orders}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():  # the client has exited, so the output has no reader
            call.signal("TERM")
            await call.settle()
            running.cancel()
        orders.cancel()
        ended = (await asyncio.gather(running, orders, return_exceptions=True))[0]
        if isinstance(ended, int):
            await _told(made, f"{ended}\n".encode())
        elif isinstance(ended, Exception):
            await self.hosting.lost(handle)
            await _told(made, _lost(ended))


def _lost(error: Exception) -> bytes:
    """Return the text that the client prints after `modal: `, and its exit code."""
    hint = getattr(error, "hint", "")
    reason = error.message if isinstance(error, MngrError) else repr(error)
    told = f"{reason.removeprefix('modal: ')}; {hint}" if hint else reason.removeprefix("modal: ")
    return f"{LOST} {' '.join(told.split())}\n".encode()


async def _received(made: socket.socket) -> tuple[bytes, list[int]]:
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[None] = loop.create_future()
    loop.add_reader(made, settled, waiting)
    try:
        await waiting
    finally:
        loop.remove_reader(made)
    head, fds, _, _ = socket.recv_fds(made, 4, 3)
    left, parts = int.from_bytes(head, "big") if len(head) == 4 else 0, []
    while left:
        chunk = await loop.sock_recv(made, min(left, 1 << 20))
        if not chunk:
            return b"", fds
        parts.append(chunk)
        left -= len(chunk)
    return b"".join(parts), fds


async def _orders(made: socket.socket, call: Call) -> None:
    """Handle signals and sizes until the client has exited."""
    loop, rest = asyncio.get_running_loop(), b""
    while True:
        try:
            chunk = await loop.sock_recv(made, 4096)
        except ConnectionError:
            return
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            word, *values = line.decode().split()
            call.signal(values[0]) if word == "signal" else call.resize(*values)


async def _told(made: socket.socket, line: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(made, line)


def main(argv: Sequence[str]) -> None:
    os.closerange(3, 256)  # it outlives the command that starts it, and must not hold its locks
    # Without a deadline, mngr would wait forever for a server that throttles requests.
    os.environ.setdefault("MODAL_MAX_THROTTLE_WAIT", "60")
    asyncio.run(Bridge(*argv).serve())


if __name__ == "__main__":
    main(sys.argv[1:])
