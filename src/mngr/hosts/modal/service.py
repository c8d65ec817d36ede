"""The calls of Modal's SDK that mngr uses, each with a deadline.

Three things go beyond the SDK's public interface. Two are due to the account's request rate: a list
that includes tags (the public one makes a request for each sandbox's tags), and the pause before
each request. One is due to memory: with the SDK's own windows, 64 MiB of unread output would be
held, and every other command in that sandbox would have to wait for it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpclib.events
import modal
from grpclib.config import Configuration
from modal import exception
from modal._utils.async_utils import synchronize_api
from modal._utils.grpc_utils import create_channel_config
from modal.client import _Client
from modal.sandbox._impl_v2 import SandboxImplV2
from modal.sandbox._sandbox import impl_class_for_sandbox_id
from modal_proto import api_pb2

from mngr.errors import MngrError, NotFound, Unreachable, UsageError
from mngr.hosts.engines.engine import NotMade
from mngr.hosts.modal.bucket import Bucket
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import TypeVar

    Answer = TypeVar("Answer")

CALL = 60.0
"""Seconds for one request; the waiting command has its own deadline, `hosts.timeout`."""
BUILD = 3600.0
"""Seconds for an image, which may have to be built."""
SCHEDULE = 600.0
"""Seconds for creating a sandbox."""
SNAPSHOT = 900
"""Seconds for a snapshot of a file system; the SDK's own 55 are too few for a large one."""
KEPT = 30 * 86400
"""Seconds that Modal keeps a snapshot."""

WINDOW = 4 << 20
"""Bytes of a command's output that may wait to be read."""

Status = api_pb2.GenericResult
ENDS = {
    Status.GENERIC_STATUS_SUCCESS: "it ended",
    Status.GENERIC_STATUS_TERMINATED: "it was terminated",
    Status.GENERIC_STATUS_TIMEOUT: "it reached its lifetime at Modal",
    Status.GENERIC_STATUS_IDLE_TIMEOUT: "it was idle for too long",
    Status.GENERIC_STATUS_INIT_FAILURE: "it could not be started",
    Status.GENERIC_STATUS_INTERNAL_FAILURE: "Modal failed",
    Status.GENERIC_STATUS_KERNEL_OOM_KILL: "it ran out of memory",
    Status.GENERIC_STATUS_MEMORY_MANAGER_EVICTION: "it ran out of memory",
    Status.GENERIC_STATUS_MEMORY_THRASHING_EVICTION: "it ran out of memory",
}


class Listed(Struct):
    """A sandbox, as listed."""

    id: str
    created: float
    tags: dict[str, str]


class Wanted(Struct):
    """A sandbox to create."""

    name: str
    argv: tuple[str, ...]
    tags: dict[str, str]
    timeout: int
    image: str = ""
    """The id of an image, or the name of a registry image, with a colon."""
    file: str = ""
    context: str = "."
    base: str = ""
    cpu: float = 1.0
    memory: int = 2048
    gpu: str = ""
    region: str = ""
    secret: tuple[str, ...] = ()
    volume: dict[str, str] = {}
    offline: bool = False
    cidr: tuple[str, ...] | None = None
    env: dict[str, str] = {}
    renewed: bool = False
    """Whether its lifetime starts again when the sandbox is created again."""


async def _paced(client: _Client, path: str) -> None:
    """Make every request to Modal's control plane wait for its turn."""
    bucket = Bucket(path)
    assert client._connection_manager is not None
    channel = await client._connection_manager.get_or_create_channel(client.server_url)

    async def wait(event: grpclib.events.SendRequest) -> None:
        await asyncio.sleep(bucket.take())

    grpclib.events.listen(channel, grpclib.events.SendRequest, wait)


async def _page(client: _Client, app: str, before: float) -> list[Listed]:
    request = api_pb2.SandboxListRequest(app_id=app, before_timestamp=before)
    answer = await SandboxImplV2.list_page(client, request)
    return [
        Listed(id=x.id, created=x.created_at, tags={y.tag_name: y.tag_value for y in x.tags})
        for x in answer.sandboxes
    ]


def _narrow() -> None:
    """Give each command's output its own flow-control window within its sandbox's."""
    from dataclasses import replace

    from modal.sandbox import _task_command_router_client as router

    def narrowed(*, sustained_keepalive: bool = False) -> Configuration:
        original = create_channel_config(sustained_keepalive=sustained_keepalive)
        return replace(original, http2_stream_window_size=WINDOW)

    vars(router)["create_channel_config"] = narrowed


_paced_call = synchronize_api(_paced)  # type: ignore[no-untyped-call]
_page_call = synchronize_api(_page)  # type: ignore[no-untyped-call]


async def within(seconds: float, what: str, call: Awaitable[Answer]) -> Answer:
    """Return the answer, or raise one of mngr's errors in one line."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError:
        raise Unreachable(f"modal did not {what} within {seconds:g} s") from None
    except exception.AuthError as error:
        hint = "run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"
        raise NotMade(f"modal: {_first(error)}", hint) from None
    except exception.ResourceExhaustedError as error:
        hint = (
            "destroy hosts that you do not need (`mngr host list`), or ask Modal for a higher limit"
        )
        raise NotMade(f"modal: {_first(error)}", hint) from None
    except exception.NotFoundError as error:
        raise NotFound(f"modal: {_first(error)}") from None
    except exception.InvalidError as error:
        raise UsageError(f"modal: {_first(error)}") from None
    except (exception.Error, OSError) as error:
        raise MngrError(f"modal: could not {what}: {_first(error)}") from None


def _first(error: BaseException) -> str:
    """Return the first sentence of an SDK error, which may have paragraphs."""
    lines = [each.strip() for each in str(error).splitlines() if each.strip()]
    if not lines:
        return type(error).__name__
    text = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return text.partition(". ")[0].rstrip(".")


class Service:
    """One Modal login."""

    def __init__(self, app: str, pace: str) -> None:
        self._name, self._pace = app, pace
        self._app: modal.App | None = None
        self._client: modal.Client | None = None
        self._images: dict[str, modal.Image] = {}
        self._lock = asyncio.Lock()
        _narrow()

    async def _opened(self) -> tuple[modal.Client, modal.App]:
        async with self._lock:
            if self._client is None or self._app is None:
                client = await within(CALL, "answer", modal.Client.from_env.aio())
                await within(CALL, "answer", _paced_call.aio(client, self._pace))
                find = modal.App.lookup.aio(self._name, create_if_missing=True, client=client)
                self._app = await within(CALL, "answer", find)
                self._client = client
            return self._client, self._app

    async def list(self) -> list[Listed]:
        """Return every running sandbox with mngr's tag; the SDK's last page may be empty."""
        client, app = await self._opened()
        found: list[Listed] = []
        page = await within(CALL, "list", _page_call.aio(client, app.app_id or "", 0.0))
        while page:
            found += page
            last = page[-1].created
            page = await within(CALL, "list", _page_call.aio(client, app.app_id or "", last))
        return found

    async def create(self, wanted: Wanted) -> modal.Sandbox:
        client, app = await self._opened()
        image = await self._image(wanted, client, app)
        making = modal.Sandbox.create.aio(
            *wanted.argv, app=app, client=client, image=image, name=wanted.name, tags=wanted.tags,
            timeout=wanted.timeout, cpu=wanted.cpu, memory=wanted.memory, gpu=wanted.gpu or None,
            region=wanted.region or None, env={**wanted.env}, block_network=wanted.offline,
            outbound_cidr_allowlist=wanted.cidr,
            secrets=[modal.Secret.from_name(each, client=client) for each in wanted.secret],
            volumes={
                path: modal.Volume.from_name(name, create_if_missing=True, client=client)
                for path, name in wanted.volume.items()
            },
            # Modal keeps its file system however it ends, even if this machine is off.
            experimental_options={"enable_exit_snapshot": True},
        )  # fmt: skip
        try:
            return await within(SCHEDULE, "create a sandbox", making)
        except MngrError:
            # The answer may be lost, or a retry may find the name taken by the first attempt.
            if (found := await self._named(wanted)) is not None:
                return found
            raise

    async def _named(self, wanted: Wanted) -> modal.Sandbox | None:
        try:
            mine = [each for each in await self.list() if each.tags == wanted.tags]
        except MngrError:
            return None
        return await self.sandbox(mine[0].id) if mine else None

    async def _image(self, wanted: Wanted, client: modal.Client, app: modal.App) -> modal.Image:
        """Return the image, built once per bridge and definition; Modal caches earlier builds."""
        key = "\0".join((wanted.image, wanted.file, wanted.context, wanted.base))
        if key in self._images and not wanted.file:
            return self._images[key]
        image = _described(wanted, client)
        if not wanted.image.startswith("im-"):
            try:
                image = await within(BUILD, "build the image", image.build.aio(app))
            except MngrError as error:
                raise NotMade(error.message, error.hint) from None
        self._images[key] = image
        return image

    async def sandbox(self, sandbox_id: str) -> modal.Sandbox:
        client, _ = await self._opened()
        return await within(CALL, "answer", modal.Sandbox.from_id.aio(sandbox_id, client=client))

    async def terminate(self, sandbox: modal.Sandbox) -> None:
        """End a sandbox; not an error if it no longer exists."""
        try:
            await within(CALL, "end a sandbox", sandbox.terminate.aio())
        except NotFound:
            return

    async def snapshot(self, sandbox: modal.Sandbox) -> str:
        taking = sandbox.snapshot_filesystem.aio(timeout=SNAPSHOT, ttl=KEPT)
        image = await within(SNAPSHOT + 30, "take a snapshot", taking)
        return str(image.object_id)

    async def ending(self, sandbox_id: str) -> tuple[str, int]:
        """Return why a sandbox ended, and its exit code; nothing while it runs."""
        client, _ = await self._opened()
        result = await within(CALL, "answer", _result_call.aio(client, sandbox_id))
        return ENDS.get(result.status, "it failed"), result.exitcode

    async def exit_snapshot(self, sandbox_id: str) -> str:
        """Return the image that Modal saved when a sandbox ended; "" if there is none."""
        try:
            found = await self.sandbox(sandbox_id)
            wait = found._experimental_get_exit_snapshot.aio(timeout=SNAPSHOT)
            return str((await within(SNAPSHOT + 30, "find the snapshot", wait)).object_id)
        except MngrError:
            return ""


async def _result(client: _Client, sandbox_id: str) -> api_pb2.GenericResult:
    found = await impl_class_for_sandbox_id(sandbox_id).lookup_by_id(client, sandbox_id)
    return found.result


_result_call = synchronize_api(_result)  # type: ignore[no-untyped-call]


def _described(wanted: Wanted, client: modal.Client) -> modal.Image:
    if wanted.image.startswith("im-"):
        return modal.Image.from_id(wanted.image, client=client)
    if wanted.image:
        return modal.Image.from_registry(wanted.image)
    default = Path(__file__).parents[1] / "engines" / "Dockerfile"
    return modal.Image.from_dockerfile(
        wanted.file or default,
        context_dir=wanted.context if wanted.file else default.parent,
        build_args={"BASE": wanted.base} if wanted.base else {},
    )
