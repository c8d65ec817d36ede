"""The control plane: apps, images, sandboxes, tags, secrets and volumes, per token.

    python -m tests.support.cloud.service FOLDER ROOT

FOLDER/port contains its port, FOLDER/requests has one line per request (time, method, token),
FOLDER/sandboxes/ID.json the request. FOLDER/orders/TOKEN.json makes it misbehave:

    quota      how many sandboxes that token may have
    lose       {method: count}: act, then cut the connection instead of answering
    hold       {method: seconds}: answer late
    code       the exit code of every command
    deny       refuse the token
    secrets    {name: {key: value}}
    build      the error of every image build
    page       sandboxes per page of a list; 50 by default
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpclib
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict
from grpclib import GRPCError, Status
from grpclib.events import RecvRequest, listen
from grpclib.server import Server, Stream
from modal_proto import api_pb2
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

from tests.support.cloud.boxes import Box, Boxes, Result, token
from tests.support.cloud.router import Router


class Orders:
    """How to misbehave now, from the file of each token."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "orders"
        self.folder.mkdir()
        self.log = open(folder / "requests", "a", buffering=1)
        self.tasks: dict[str, str] = {}
        """Whose a task is: its router is asked with another token."""

    def of(self, owner: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.folder / f"{owner}.json").read_bytes())
        except FileNotFoundError:
            return {}
        return found

    def lost(self, owner: str, method: str) -> bool:
        """Return whether this answer is to be lost; each requested loss happens once."""
        orders = self.of(owner)
        left = orders.get("lose", {}).get(method, 0)
        if left > 0:
            orders["lose"][method] = left - 1
            fresh = self.folder / f".{owner}.{os.urandom(4).hex()}"
            fresh.write_text(json.dumps(orders))
            fresh.rename(self.folder / f"{owner}.json")
        return bool(left > 0)

    async def received(self, event: RecvRequest) -> None:
        method = event.method_name.rpartition("/")[2]
        owner = _owner(event.metadata)
        self.log.write(f"{time.time():.6f} {method} {owner}\n")
        orders = self.of(owner)
        if orders.get("deny"):
            raise GRPCError(Status.UNAUTHENTICATED, "Token validation failed")
        await asyncio.sleep(orders.get("hold", {}).get(method, 0))


def _owner(metadata: Any) -> str:
    """Return the token's id; for a request to a router, from its JWT."""
    if "x-modal-token-id" in metadata:
        return str(metadata["x-modal-token-id"])
    claims = str(metadata.get("authorization", "..")).split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(claims + "=="))["owner"])


class Control:
    """The requests that the SDK sends to api.modal.com."""

    def __init__(self, folder: Path, root: Path, orders: Orders) -> None:
        self.folder, self.orders = folder, orders
        self.boxes = Boxes(folder, root)
        self.url = ""
        self.built: dict[str, str] = {}
        self.secrets: dict[str, dict[str, str]] = {}
        (folder / "sandboxes").mkdir()

    def methods(self) -> dict[str, Any]:
        """Return the methods by the names of their requests, with those for older sandboxes."""
        plain = {
            "ClientHello": self.hello,
            "AuthTokenGet": self.auth,
            "AppGetOrCreate": self.app,
            "EnvironmentGetOrCreate": self.environment,
            "ImageGetOrCreate": self.image,
            "ImageFromId": self.image_from_id,
            "ImageJoinStreaming": self.built_image,
            "SecretGetOrCreate": self.secret,
            "VolumeGetOrCreate": self.volume,
            "MountPutFile": self.put_file,
            "MountGetOrCreate": self.mount,
            "SandboxCreate": self.create,
            "SandboxCreateV2": self.create,
            "TaskGetCommandRouterAccess": self.access,
            "SandboxGetCommandRouterAccess": self.access,
        }
        both = {
            "SandboxList": self.list,
            "SandboxWait": self.wait,
            "SandboxTerminate": self.terminate,
            "SandboxGetTaskId": self.task,
            "SandboxTagsGet": self.tags,
            "SandboxTagsSet": self.set_tags,
            "SandboxGetExitSnapshot": self.exit_snapshot,
        }
        return plain | both | {f"{name}V2": method for name, method in both.items()}

    def box(self, owner: str, box_id: str) -> Box:
        box = self.boxes.all.get(box_id)
        if box is None or box.owner != owner:
            raise GRPCError(Status.NOT_FOUND, f"Sandbox {box_id} not found")
        return box

    async def hello(self, owner: str, asked: Any) -> Any:
        return api_pb2.ClientHelloResponse(image_builder_version="2025.06")

    async def auth(self, owner: str, asked: Any) -> Any:
        return api_pb2.AuthTokenGetResponse(token=token(owner=owner))

    async def app(self, owner: str, asked: Any) -> Any:
        return api_pb2.AppGetOrCreateResponse(app_id=f"ap-{owner}-{asked.app_name}")

    async def environment(self, owner: str, asked: Any) -> Any:
        settings = api_pb2.EnvironmentSettings(image_builder_version="2025.06")
        metadata = api_pb2.EnvironmentMetadata(name="main", settings=settings)
        return api_pb2.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    async def image(self, owner: str, asked: Any) -> Any:
        """Return an image, built at once: whatever its commands are, it has the lab's root."""
        if error := self.orders.of(owner).get("build"):
            failed = Result(status=Result.GENERIC_STATUS_FAILURE, exception=error)
            return api_pb2.ImageGetOrCreateResponse(image_id="im-failed", result=failed)
        key = asked.image.SerializeToString(deterministic=True).hex()
        known = key in self.built
        image = self.built.setdefault(key, f"im-{os.urandom(11).hex()}")
        self.boxes.images.setdefault(image, [])
        (self.folder / "sandboxes" / f"{image}.json").write_text(
            json.dumps(MessageToDict(asked.image, preserving_proto_field_name=True))
        )
        done = Result(status=Result.GENERIC_STATUS_SUCCESS) if known else None
        return api_pb2.ImageGetOrCreateResponse(image_id=image, result=done)

    async def built_image(self, owner: str, asked: Any) -> Any:
        done = Result(status=Result.GENERIC_STATUS_SUCCESS)
        return api_pb2.ImageJoinStreamingResponse(result=done, eof=True)

    async def image_from_id(self, owner: str, asked: Any) -> Any:
        if asked.image_id not in self.boxes.images:
            raise GRPCError(Status.NOT_FOUND, f"Image {asked.image_id} not found")
        return api_pb2.ImageFromIdResponse(image_id=asked.image_id)

    async def secret(self, owner: str, asked: Any) -> Any:
        if asked.env_dict:
            secret = f"st-{os.urandom(11).hex()}"
            self.secrets[secret] = dict(asked.env_dict)
            return api_pb2.SecretGetOrCreateResponse(secret_id=secret)
        known = self.orders.of(owner).get("secrets", {})
        if asked.deployment_name not in known:
            raise GRPCError(Status.NOT_FOUND, f"Secret '{asked.deployment_name}' not found")
        secret = f"st-{owner}-{asked.deployment_name}"
        self.secrets[secret] = known[asked.deployment_name]
        return api_pb2.SecretGetOrCreateResponse(secret_id=secret)

    async def volume(self, owner: str, asked: Any) -> Any:
        return api_pb2.VolumeGetOrCreateResponse(volume_id=f"vo-{asked.deployment_name}")

    async def put_file(self, owner: str, asked: Any) -> Any:
        return api_pb2.MountPutFileResponse(exists=True)

    async def mount(self, owner: str, asked: Any) -> Any:
        return api_pb2.MountGetOrCreateResponse(mount_id=f"mo-{os.urandom(11).hex()}")

    async def create(self, owner: str, asked: Any) -> Any:
        definition = asked.definition
        mine = [each for each in self.boxes.all.values() if each.owner == owner and not each.result]
        if len(mine) >= self.orders.of(owner).get("quota", 1000):
            raise GRPCError(Status.RESOURCE_EXHAUSTED, "Workspace sandbox limit reached")
        if definition.name and definition.name in [each.definition.name for each in mine]:
            raise GRPCError(Status.ALREADY_EXISTS, f"Sandbox {definition.name} already exists")
        if definition.image_id not in self.boxes.images:
            raise GRPCError(Status.NOT_FOUND, f"Image {definition.image_id} not found")
        tags = {each.tag_name: each.tag_value for each in asked.tags}
        env = {k: v for each in definition.secret_ids for k, v in self.secrets[each].items()}
        new = isinstance(asked, api_pb2.SandboxCreateV2Request)
        for each in asked.secret_sources if new else ():
            env |= self.secrets[each.secret_id] if each.secret_id else dict(each.env.contents)
        box = await self.boxes.make(owner, asked.app_id, definition, tags, env, new)
        told = MessageToDict(asked, preserving_proto_field_name=True)
        (self.folder / "sandboxes" / f"{box.id}.json").write_text(json.dumps(told))
        if not new:
            return api_pb2.SandboxCreateResponse(sandbox_id=box.id)
        return api_pb2.SandboxCreateV2Response(
            sandbox_id=box.id, task_id=box.task, command_router_access=self._access(box)
        )

    def _access(self, box: Box) -> api_pb2.CommandRouterAccess:
        return api_pb2.CommandRouterAccess(url=self.url, jwt=token(owner=box.owner))

    async def access(self, owner: str, asked: Any) -> Any:
        found = [x for x in self.boxes.all.values() if asked.task_id and x.task == asked.task_id]
        box = found[0] if found else self.box(owner, getattr(asked, "sandbox_id", ""))
        if box.result:
            raise GRPCError(Status.FAILED_PRECONDITION, "Sandbox has already finished")
        made = self._access(box)
        if isinstance(asked, api_pb2.TaskGetCommandRouterAccessRequest):
            return api_pb2.TaskGetCommandRouterAccessResponse(url=made.url, jwt=made.jwt)
        return api_pb2.SandboxGetCommandRouterAccessResponse(url=made.url, jwt=made.jwt)

    async def list(self, owner: str, asked: Any) -> Any:
        wanted = {each.tag_name: each.tag_value for each in asked.tags}
        mine = [
            box
            for box in self.boxes.all.values()
            if box.owner == owner
            and (not asked.app_id or box.app == asked.app_id)
            and wanted.items() <= box.tags.items()
            and (asked.include_finished or box.result is None)
            and (not asked.before_timestamp or box.created < asked.before_timestamp)
        ]
        mine.sort(key=lambda box: -box.created)
        page = mine[: self.orders.of(owner).get("page", 50)]
        return api_pb2.SandboxListResponse(sandboxes=[_info(box) for box in page])

    async def wait(self, owner: str, asked: Any) -> Any:
        box = self.box(owner, asked.sandbox_id)
        try:
            async with asyncio.timeout(asked.timeout or 0.001):
                await box.ended.wait()
        except TimeoutError:
            pass
        metadata = api_pb2.SandboxHandleMetadata(app_id=box.app)
        return api_pb2.SandboxWaitResponse(result=box.result, metadata=metadata)

    async def terminate(self, owner: str, asked: Any) -> Any:
        box = self.box(owner, asked.sandbox_id)
        box.end(Result.GENERIC_STATUS_TERMINATED)
        await box.ended.wait()
        return api_pb2.SandboxTerminateResponse()

    async def task(self, owner: str, asked: Any) -> Any:
        box = self.box(owner, asked.sandbox_id)
        if box.result:
            return api_pb2.SandboxGetTaskIdResponse(task_result=box.result)
        return api_pb2.SandboxGetTaskIdResponse(task_id=box.task)

    async def tags(self, owner: str, asked: Any) -> Any:
        return api_pb2.SandboxTagsGetResponse(tags=_tags(self.box(owner, asked.sandbox_id)))

    async def set_tags(self, owner: str, asked: Any) -> Any:
        tags = {each.tag_name: each.tag_value for each in asked.tags}
        self.box(owner, asked.sandbox_id).tags = tags
        return Empty()

    async def exit_snapshot(self, owner: str, asked: Any) -> Any:
        box, answer = self.box(owner, asked.sandbox_id), api_pb2.SandboxGetExitSnapshotResponse
        if box.exit_image:
            return answer(success=answer.Success(image_id=box.exit_image))
        if not box.ended.is_set():
            return answer(pending=answer.Pending())
        return answer(error=answer.Error(error_code=answer.ERROR_CODE_TIMEOUT, message="none"))


def _tags(box: Box) -> list[api_pb2.SandboxTag]:
    return [api_pb2.SandboxTag(tag_name=k, tag_value=v) for k, v in box.tags.items()]


def _info(box: Box) -> api_pb2.SandboxInfo:
    return api_pb2.SandboxInfo(
        id=box.id, created_at=box.created, app_id=box.app, tags=_tags(box),
        name=box.definition.name, image_id=box.definition.image_id,
        timeout_secs=box.definition.timeout_secs,
        task_info=api_pb2.TaskInfo(id=box.task, started_at=box.created, result=box.result),
    )  # fmt: skip


def served(base: type, methods: dict[str, Any], orders: Orders) -> Any:
    """Return the SDK's own service class with those methods; any other is unimplemented."""

    def handler(name: str) -> Any:
        async def answer(self: object, stream: Stream[Any, Any]) -> None:
            if name not in methods:
                raise GRPCError(Status.UNIMPLEMENTED, f"{name} is not on this machine")
            if name.startswith("Task") and name != "TaskGetCommandRouterAccess":
                await methods[name](stream)
                return
            assert stream.metadata is not None
            owner = _owner(stream.metadata)
            told = await methods[name](owner, await stream.recv_message())
            if orders.lost(owner, name):
                raise GRPCError(Status.UNAVAILABLE, "connection lost")
            await stream.send_message(told)

        return answer

    names = [each for each in vars(base) if each[0].isupper()]
    return type(base.__name__, (base,), {name: handler(name) for name in names})()


async def main(folder: Path, root: Path) -> None:
    orders = Orders(folder)
    control = Control(folder, root, orders)
    router = Router(control.boxes, orders)
    services = [
        served(ModalClientBase, control.methods(), orders),
        served(TaskCommandRouterBase, router.methods(), orders),
    ]
    server = await started(services, orders, 0)
    listening: Any = server._server
    port = listening.sockets[0].getsockname()[1]
    control.url = f"http://127.0.0.1:{port}"
    (folder / "port.new").write_text(str(port))
    (folder / "port.new").rename(folder / "port")
    while True:
        await until((folder / "refusing").exists)
        server.close()
        for protocol in server.protocols:
            connection = getattr(protocol, "connection", None)
            if transport := getattr(connection, "_transport", None):
                transport.abort()
        (folder / "refused").touch()
        await until(lambda: not (folder / "refusing").exists())
        server = await started(services, orders, port)
        (folder / "refused").unlink()


class Cuttable(Server):
    """A server that knows its connections, so that they can be cut."""

    def __init__(self, services: Any) -> None:
        super().__init__(services)
        self.protocols: list[Any] = []

    def _protocol_factory(self) -> Any:
        made = super()._protocol_factory()
        self.protocols.append(made)
        return made


async def started(services: Any, orders: Orders, port: int) -> Cuttable:
    server = Cuttable(services)
    listen(server, RecvRequest, orders.received)
    await server.start("127.0.0.1", port, reuse_address=True)
    return server


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    print(grpclib.__version__, file=sys.stderr)
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
