"""The command router: commands in sandboxes, their streams, and snapshots of file systems."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from grpclib import GRPCError, Status
from grpclib.server import Stream
from modal_proto import task_command_router_pb2 as pb

from tests.support.cloud.boxes import Box, Boxes, Exec

if TYPE_CHECKING:
    from tests.support.cloud.service import Orders


class Router:
    """The requests that the SDK sends to the machine of a sandbox."""

    def __init__(self, boxes: Boxes, orders: Orders) -> None:
        self.boxes, self.orders = boxes, orders

    def methods(self) -> dict[str, Any]:
        return {
            "TaskExecStart": self.start,
            "TaskExecStdioRead": self.read,
            "TaskExecStdinWrite": self.write,
            "TaskExecStdinStatus": self.status,
            "TaskExecWait": self.wait,
            "TaskExecPoll": self.poll,
            "TaskSnapshotFilesystem": self.snapshot,
        }

    def box(self, task: str) -> Box:
        found = next((box for box in self.boxes.all.values() if box.task == task), None)
        if found is None or found.result is not None:
            raise GRPCError(Status.NOT_FOUND, f"Task {task} not found")
        return found

    def exec(self, asked: Any) -> Exec:
        found = next((box for box in self.boxes.all.values() if box.task == asked.task_id), None)
        if found is None or asked.exec_id not in found.execs:
            raise GRPCError(Status.NOT_FOUND, f"Exec {asked.exec_id} not found")
        return found.execs[asked.exec_id]

    async def start(self, stream: Stream[Any, Any]) -> None:
        asked: Any = await stream.recv_message()
        box = self.box(asked.task_id)
        if asked.exec_id not in box.execs:
            env = {k: v for each in asked.secret_sources for k, v in each.env.contents.items()}
            pty = asked.pty_info if asked.HasField("pty_info") else None
            made = await box.start(list(asked.command_args), env, asked.workdir, pty)
            made.code = self.orders.of(box.owner).get("code")
            box.execs[asked.exec_id] = made
        await stream.send_message(pb.TaskExecStartResponse())

    async def read(self, stream: Stream[Any, Any]) -> None:
        asked: Any = await stream.recv_message()
        made, offset = self.exec(asked), asked.offset
        number = 1 if asked.file_descriptor == pb.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT else 2
        while data := await made.output(number, offset):
            offset += len(data)
            await stream.send_message(pb.TaskExecStdioReadResponse(data=data))

    async def write(self, stream: Stream[Any, Any]) -> None:
        asked: Any = await stream.recv_message()
        await self.exec(asked).write(asked.offset, asked.data, asked.eof)
        await stream.send_message(pb.TaskExecStdinWriteResponse())

    async def status(self, stream: Stream[Any, Any]) -> None:
        made = self.exec(await stream.recv_message())
        await stream.send_message(pb.TaskExecStdinStatusResponse(num_bytes_written=made.written))

    async def wait(self, stream: Stream[Any, Any]) -> None:
        asked: Any = await stream.recv_message()
        code = await self.exec(asked).wait()
        ended = {"code": code} if code >= 0 else {"signal": -code}
        if self.exec(asked).code == -1:
            ended = {"code": -1}
        await stream.send_message(pb.TaskExecWaitResponse(**ended))
        asyncio.get_running_loop().call_later(5, self._forget, asked)

    def _forget(self, asked: Any) -> None:
        box = next((box for box in self.boxes.all.values() if box.task == asked.task_id), None)
        if box:
            box.execs.pop(asked.exec_id, None)

    async def poll(self, stream: Stream[Any, Any]) -> None:
        code = self.exec(await stream.recv_message()).process.returncode
        ended = {} if code is None else {"code": code} if code >= 0 else {"signal": -code}
        await stream.send_message(pb.TaskExecPollResponse(**ended))

    async def snapshot(self, stream: Stream[Any, Any]) -> None:
        asked: Any = await stream.recv_message()
        image = await self.boxes.snapshot(self.box(asked.task_id))
        await stream.send_message(pb.TaskSnapshotFilesystemResponse(image_id=image))
