"""The options of `create`, and the host that they name."""

from __future__ import annotations

from mngr.errors import UsageError
from mngr.hosts.base import Host, HostRequest
from mngr.model.address import parse_address
from mngr.model.records import AgentRecord, Window
from mngr.model.struct import Json, Struct
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class CreateRequest(Struct):
    """All options of `create`."""

    address: str = ""
    type: str = ""
    args: tuple[str, ...] = ()
    message: str = ""
    source: str = "."
    transfer: str = ""
    branch: str = ""
    include_dirty: bool = False
    committed_only: bool = False
    """Leave uncommitted changes behind instead of refusing."""
    windows: tuple[Window, ...] = ()
    labels: dict[str, str] = {}
    project: str = ""
    env: dict[str, str] = {}
    provider: str = ""
    new_host: bool = False
    build: dict[str, str] = {}
    start_args: tuple[str, ...] = ()
    lifetime: float | None = None
    idle: float | None = None
    host_tags: dict[str, str] = {}
    uploads: tuple[tuple[str, str], ...] = ()
    provision: tuple[str, ...] = ()
    reuse: bool = False
    numbered: bool = False
    """The name ends in a number, which is raised if another command takes the name first."""
    timeout: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    headless: bool = False
    pass_login: bool = False
    """Copy the user's login and its variables to a host that does not share files."""
    record: bool = False
    sandbox: str = ""
    """offline or open; "" means no sandbox."""
    width: int = 0
    height: int = 0
    progress: Callable[[int], None] | None = None
    """Called with the number of files copied so far, if a directory is copied."""
    waiting: Callable[[str], None] | None = None
    """Called with the reason while a new host does not start."""
    base_commit: str = ""
    """The commit that changes are counted from, if it is not the one this agent starts at."""
    plugin: dict[str, Json] = {}
    scripts: dict[str, bytes] = {}
    """Executable files for the agent's state directory, by name."""
    conversation: dict[str, bytes] = {}
    """Files of a conversation to continue, by the names that the agent type uses."""
    verify: Callable[[Host, AgentRecord], None] | None = None
    """Called when the work directory exists, before anything runs in it."""

    @property
    def wants_new_host(self) -> bool:
        return self.new_host or parse_address(self.address).new_host


def place(world: World, request: CreateRequest, *, make: bool = True) -> tuple[Host, str]:
    """Return the host, which is created if a new one is requested, and the agent's name."""
    address = parse_address(request.address)
    if address.path is not None:
        raise UsageError(f"{request.address!r}: create takes no path", "use --from DIR")
    if address.provider and request.provider and address.provider != request.provider:
        raise UsageError(f"{request.address!r} conflicts with --provider {request.provider}")
    provider = address.provider or request.provider
    if not request.wants_new_host:
        return world.host(address.host, provider), address.name
    from mngr.ops.hosting import hosts

    there = hosts.holding(world, provider, address.name) if request.reuse else None
    asked = HostRequest(
        name=address.host, build=request.build, start=request.start_args,
        lifetime=request.lifetime, idle=request.idle, tags=request.host_tags,
        waiting=request.waiting,
    )  # fmt: skip
    return there or hosts.fresh(world, provider, address.name, asked, make=make), address.name
