"""The interface of hosts and of providers."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.model.completed import Completed
from mngr.model.records import revision
from mngr.model.state import Evidence
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol, TypeAlias

    from mngr.settings.layers import Config
else:
    Protocol = object


Files: TypeAlias = "Mapping[str, tuple[bytes, int]]"
"""Absolute path -> (content, mode)."""
CHANGING = "it is too large, or kept changing while it was read"
"""Why an existing record could not be read."""
QUIET = 4
"""A host that is silent for this many times its patience is checked."""


class HostRef(Struct):
    """The identity of a host."""

    id: str
    name: str
    provider: str
    tags: dict[str, Json] = {}


class CommandFailed(MngrError):
    """A script of mngr's own failed on a host."""

    def __init__(self, host: HostRef, done: Completed) -> None:
        super().__init__(f"host {host.name}: {done.complaint}")
        self.done = done


class HostReading(Struct):
    """The answer of a host to one reading."""

    now: float = 0.0
    agents: tuple[Evidence, ...] = ()
    error: str = ""
    """Why the host, or its tmux, did not answer."""
    hint: str = ""
    """The command to type next."""
    stopped: bool = False
    """Whether the provider reports that the host is not running."""


class Capabilities(Struct):
    """What a provider supports; the CLI reports an error for anything else."""

    shares_files: bool = False
    """Paths on this machine mean the same there, so worktrees of local repositories work."""
    new_hosts: bool = False
    snapshots: bool = False
    restarts: bool = False
    """Hosts can be stopped and started again."""


class HostRequest(Struct):
    """A request for a new host."""

    name: str
    build: dict[str, str] = {}
    start: tuple[str, ...] = ()
    lifetime: float | None = None
    idle: float | None = None
    """Seconds without activity after which it ends itself."""
    tags: dict[str, str] = {}
    waiting: Callable[[str], None] | None = None
    """Called with the reason while the host does not start."""


class Lease(Struct):
    """A resource of an engine with mngr's tag."""

    handle: str
    host_id: str
    name: str
    running: bool
    ending: bool = False
    """Whether it is about to end, although some of its processes still run."""
    reason: str = ""
    ends: float | None = None
    """When it ends by itself."""
    controller: str = ""
    """The id of the home that created it."""


class Host(Protocol):
    """A machine that can run a command."""

    ref: HostRef
    capabilities: Capabilities
    environment: dict[str, str]
    """The basic variables of every agent on it, such as HOME and PATH."""
    patience: float
    """Seconds a reading may take."""
    greets: bool
    """Whether its shell was seen to print text before the output of a command."""

    @property
    def home(self) -> str:
        """Return $MNGR_HOST_DIR on the host."""

    @property
    def socket(self) -> str:
        """Return the socket of mngr's tmux server on the host."""

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        """Return the local argv that runs `argv` on this host."""

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Callable[[int, bytes], None] | None = None,
    ) -> Completed:
        """Run a command to its end, with a deadline.

        With a sink, output is passed on as it arrives, by file descriptor, and not kept. Without
        one, TooMuch is raised for more output than is kept.
        """

    def read(
        self, ids: Sequence[str] | None = None, after: Sequence[str] = (), patience: float = 0.0
    ) -> HostReading:
        """Read every record, pane and signal in one round trip; no agents if `ids` is empty.

        A command `after` which to read is run first in the same round trip, with `patience` seconds
        more; if it fails, CommandFailed is raised.
        """

    def put(self, files: Files) -> None:
        """Write each file under a temporary name, then rename it into place."""

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        """Write `<stem>.<rev+1>.json` if `rev` is still the highest; return whether it was.

        Revision 0 creates the record and its folder. Any other revision changes an existing record,
        and fails if the folder does not exist.
        """


class Provider(Protocol):
    """Creates and finds hosts."""

    name: str

    def __init__(self, config: Config) -> None: ...

    def hosts(self) -> list[Host]:
        """Return every host it knows."""


def is_here(host: Host) -> bool:
    """Return whether commands for that host run on this machine, and so its programs."""
    return host.argv(["x"]) == ["x"]


def newest(names: Sequence[str], stem: str) -> tuple[int, str]:
    """Return the highest revision among file names, and its file name."""
    return max(((revision(name, stem), name) for name in names), default=(0, ""))
