"""The contract every host keeps, and what a provider of hosts offers."""

from __future__ import annotations

from mngr.model.records import revision
from mngr.model.state import Evidence
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol, TypeAlias

    from mngr.settings.layers import Config

    Files: TypeAlias = Mapping[str, tuple[bytes, int]]
    """Absolute path -> (content, mode)."""
else:
    Protocol = object


CHANGING = "it is too large, or kept changing while it was read"
"""Why a record could not be read that is there."""
QUIET = 4
"""A host that has said nothing for so many times its patience is asked whether it is there."""


class HostRef(Struct):
    """A host's name tag."""

    id: str
    name: str
    provider: str
    tags: dict[str, Json] = {}


class Completed(Struct):
    """How a command ended."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def complaint(self) -> str:
        """The last line it wrote to stderr: what most programs mean by it."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


class HostReading(Struct):
    """Everything a host said in one round trip."""

    host: HostRef
    now: float
    agents: tuple[Evidence, ...]
    error: str = ""
    """Why the host, or its tmux, did not answer."""
    stopped: bool = False
    """Whether it did not because it does not run, as its provider says."""


class Capabilities(Struct):
    """What a provider can do; the CLI turns what it cannot into a clear error."""

    shares_files: bool = False
    """Paths on this machine mean the same there, so worktrees of local repositories work."""
    same_kernel: bool = False
    """Its processes and terminals are this machine's, and can be looked at directly."""
    new_hosts: bool = False
    snapshots: bool = False
    restarts: bool = False
    """Hosts can be stopped and started again."""


class HostRequest(Struct):
    """A host to be made."""

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
    """Something over there that carries our tag."""

    handle: str
    host_id: str
    name: str
    running: bool
    ending: bool = False
    """Whether it is about to end, though something of it still runs."""
    reason: str = ""
    ends: float | None = None
    """When it ends by itself."""
    controller: str = ""
    """Which home made it."""


class Host(Protocol):
    """Anything that can run a command."""

    ref: HostRef
    capabilities: Capabilities
    environment: dict[str, str]
    """What every agent there starts from: HOME, PATH and their kin."""
    patience: float
    """Seconds a reading may take."""

    @property
    def home(self) -> str:
        """$MNGR_HOST_DIR there."""

    @property
    def socket(self) -> str:
        """Our tmux server's socket there."""

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        """The local argv that runs `argv` on this host."""

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Callable[[int, bytes], None] | None = None,
    ) -> Completed:
        """Run to the end; always with a deadline.

        With a sink, output is handed over as it comes, by file descriptor, and not kept.
        """

    def read(self, ids: Sequence[str] | None = None) -> HostReading:
        """One round trip: every record, pane and signal; of no agent where `ids` is empty."""

    def put(self, files: Files) -> None:
        """Write each file under a temporary name, then rename it into place."""

    def swap(self, stem: str, rev: int, content: bytes) -> bool:
        """Compare-and-swap: make `<stem>.<rev+1>.json` if `rev` is still the highest there.

        Revision 0 creates, with the folder. Any other changes what is there, and fails where the
        folder is gone.
        """


class Provider(Protocol):
    """Makes and finds hosts."""

    name: str

    def __init__(self, config: Config) -> None: ...

    def hosts(self) -> list[Host]:
        """Every host it knows of."""


def newest(names: Sequence[str], stem: str) -> tuple[int, str]:
    """The highest revision among file names, and that name."""
    return max(((revision(name, stem), name) for name in names), default=(0, ""))
