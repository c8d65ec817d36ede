"""Sandboxes as local process trees; each has a root file system on top of its image's layers."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import signal
import struct
import termios
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from modal_proto import api_pb2

HERE = Path(__file__).parent
Result = api_pb2.GenericResult
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KEPT = 8 << 20
"""Bytes of output that stay readable again after they were sent."""
TIOCGPTPEER, TIOCSPTLCK = 0x5441, 0x40045431


def token(**claims: object) -> str:
    """Return a text that looks like a JWT; it is never verified here."""
    parts: tuple[dict[str, object], ...] = (
        {"alg": "none"},
        {"exp": time.time() + 3600, **claims},
        {},
    )
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in parts)


@dataclass
class Exec:
    """A command in a sandbox, with the part of its output that is still needed."""

    process: asyncio.subprocess.Process
    streams: dict[int, asyncio.StreamReader]
    stdin: asyncio.StreamWriter | None
    held: dict[int, bytearray] = field(default_factory=lambda: {1: bytearray(), 2: bytearray()})
    dropped: dict[int, int] = field(default_factory=lambda: {1: 0, 2: 0})
    written: int = 0
    code: int | None = None
    """The exit code to report instead of the process's own."""

    async def output(self, number: int, offset: int) -> bytes:
        """Return the output after `offset`, empty at the end; read only as much as is requested."""
        held, start = self.held[number], offset - self.dropped[number]
        assert start >= 0, "output that was forgotten"
        if start < len(held):
            return bytes(held[start : start + (1 << 16)])
        try:
            data = await self.streams[number].read(1 << 16) if number in self.streams else b""
        except OSError:  # the last process on the terminal has ended
            data = b""
        held += data
        if (excess := len(held) - KEPT) > 0:
            del held[:excess]
            self.dropped[number] += excess
        return data

    async def write(self, offset: int, data: bytes, eof: bool) -> None:
        fresh = data[max(0, self.written - offset) :]
        if self.stdin is None:
            return
        with suppress(ConnectionError, BrokenPipeError):
            if fresh:
                self.stdin.write(fresh)
                await self.stdin.drain()
        self.written += len(fresh)
        if eof:
            self.stdin.close()

    async def wait(self) -> int:
        code = await self.process.wait()
        return code if self.code is None else self.code


@dataclass
class Box:
    """One sandbox."""

    id: str
    task: str
    owner: str
    app: str
    definition: api_pb2.Sandbox
    tags: dict[str, str]
    env: dict[str, str]
    folder: Path
    process: asyncio.subprocess.Process
    created: float = field(default_factory=time.time)
    execs: dict[str, Exec] = field(default_factory=dict)
    result: api_pb2.GenericResult | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    exit_image: str = ""

    @property
    def init(self) -> int:
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return int(Path(path).read_text().split()[0])

    def end(self, status: int) -> None:
        """End it from outside: at once, with all its processes."""
        if self.result is None:
            self.result = Result(status=status)  # type: ignore[arg-type]
            with suppress(ProcessLookupError):
                self.process.kill()

    def words(self, argv: list[str], env: dict[str, str], workdir: str, tty: bool) -> list[str]:
        every = {"PATH": PATH, "HOME": "/root", **self.env, **env}
        space = ("nsenter", "-m", "-u", "-i", "-n", "-p", "-r", "-t", str(self.init))
        there = f"--wd=/proc/{self.init}/root{workdir or '/root'}"
        given = [f"{key}={value}" for key, value in every.items()]
        return [*space, there, "setsid", *(["-c"] if tty else []), "env", "-i", *given, *argv]

    async def start(
        self, argv: list[str], env: dict[str, str], workdir: str, pty: api_pb2.PTYInfo | None
    ) -> Exec:
        words = self.words(argv, env, workdir, pty is not None)
        if pty is not None:
            return await self._on_terminal(words, pty)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, limit=1 << 16
        )
        assert process.stdout and process.stderr
        return Exec(process, {1: process.stdout, 2: process.stderr}, process.stdin)

    async def _on_terminal(self, words: list[str], pty: api_pb2.PTYInfo) -> Exec:
        """Start the command on a terminal of the sandbox's own devpts, so that it can name it."""
        master = os.open(f"/proc/{self.init}/root/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(master, TIOCSPTLCK, struct.pack("i", 0))
        slave = fcntl.ioctl(master, TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
        size = struct.pack("HHHH", pty.winsz_rows or 24, pty.winsz_cols or 80, 0, 0)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        process = await asyncio.create_subprocess_exec(
            *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        shared = os.fdopen(master, "r+b", buffering=0)
        protocol = asyncio.StreamReaderProtocol(reader)
        await loop.connect_read_pipe(lambda: protocol, shared)
        out = os.fdopen(os.dup(master), "wb", buffering=0)
        transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, out)
        return Exec(process, {1: reader}, asyncio.StreamWriter(transport, flow, None, loop))


class Boxes:
    """All sandboxes and images of the service."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder / "state", root
        self.alive, self.doomed = folder / "alive", folder / "doomed"
        for each in (self.alive, self.doomed):
            each.mkdir()
        self.all: dict[str, Box] = {}
        self.images: dict[str, list[Path]] = {}
        """By id, the layers of each above the root; the newest first."""
        (self.folder / "layers").mkdir()

    async def make(
        self,
        owner: str,
        app: str,
        definition: api_pb2.Sandbox,
        tags: dict[str, str],
        env: dict[str, str],
        new: bool,
    ) -> Box:
        mark = os.urandom(11).hex()
        folder = self.folder / "boxes" / mark
        for each in ("upper", "work"):
            (folder / each).mkdir(parents=True)
        layers = [*self.images.get(definition.image_id, []), self.root]
        mounts = [word for each in definition.volume_mounts for word in self._mount(owner, each)]
        argv = list(definition.entrypoint_args) or ["sleep", "infinity"]
        process = await asyncio.create_subprocess_exec(
            *("unshare", "-m", "-p", "-u", "-i", "-n", "--fork", "--kill-child", "--"),
            *(str(HERE / "box.sh"), str(folder), ":".join(map(str, layers)), "modal", *mounts),
            *("--", *(f"{key}={value}" for key, value in env.items()), *argv),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        assert process.stdout and await process.stdout.readline(), "the sandbox did not begin"
        task = f"ta-{mark}V" if new else f"ta-{mark}"
        box_id = f"sb-{mark}new" if new else f"sb-{mark}"
        box = Box(box_id, task, owner, app, definition, tags, env, folder, process)
        self.all[box_id] = box
        (self.alive / box_id).write_text(f"{owner} {box.init}")
        box_task = asyncio.create_task(self._watch(box))
        box_task.add_done_callback(lambda done: done.exception())
        return box

    def _mount(self, owner: str, mount: api_pb2.VolumeMount) -> list[str]:
        place = self.folder / "volumes" / owner / mount.volume_id
        place.mkdir(parents=True, exist_ok=True)
        return [str(place), mount.mount_path]

    async def _watch(self, box: Box) -> None:
        limit = asyncio.get_running_loop().call_later(
            box.definition.timeout_secs or 300, box.end, Result.GENERIC_STATUS_TIMEOUT
        )
        code = await self._end(box)
        limit.cancel()
        (self.alive / box.id).unlink()
        if box.result is None:
            status = Result.GENERIC_STATUS_FAILURE if code else Result.GENERIC_STATUS_SUCCESS
            box.result = Result(status=status, exitcode=code)
        if box.definition.experimental_options_v2.get("enable_exit_snapshot") == "True":
            box.exit_image = await self.snapshot(box)
        box.ended.set()
        await asyncio.to_thread(shutil.rmtree, box.folder, True)

    async def _end(self, box: Box) -> int:
        """Return the exit code of its first process; a file in `doomed` is a failed machine."""
        ending = asyncio.create_task(box.process.wait())
        while not ending.done():
            await asyncio.wait({ending}, timeout=0.2)
            if (self.doomed / box.id).exists():
                box.end(Result.GENERIC_STATUS_INTERNAL_FAILURE)
        return ending.result()

    async def snapshot(self, box: Box) -> str:
        image = f"im-{os.urandom(11).hex()}"
        layer = self.folder / "layers" / image
        copy = ("cp", "-a", "--reflink=auto", str(box.folder / "upper"), str(layer))
        process = await asyncio.create_subprocess_exec(*copy)
        assert await process.wait() == 0
        self.images[image] = [layer, *self.images.get(box.definition.image_id, [])]
        return image

    def close(self) -> None:
        for box in self.all.values():
            with suppress(ProcessLookupError):
                if box.process.returncode is None:
                    os.kill(box.process.pid, signal.SIGKILL)
