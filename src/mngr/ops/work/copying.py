"""Copy whole directories from this machine to a host, or between hosts."""

from __future__ import annotations

from mngr.errors import MngrError
from mngr.hosts import spawn
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts.base import Host
    from mngr.hosts.spawn import Sink
    from mngr.ops.work.sources import Source

    Progress = Callable[[int], None]

# Shares blocks where the disk can; the second spelling is for a cp that does not know how. $3 is
# -v when somebody watches.
COPY = """
mkdir -p "$2" || exit 1
cp -a $3 --reflink=auto "$1/." "$2/" 2> /dev/null || cp -pPR $3 "$1/." "$2/"
"""
PACK = ["sh", "-c", 'cd "$1" && tar -cf - .', "mngr"]
UNPACK = ["sh", "-c", 'mkdir -p "$1" && tar -x $2 -pf - -C "$1"', "mngr"]


def copy_tree(host: Host, origin: Source, work_dir: str, progress: Progress | None = None) -> None:
    """Copy every file, mode and link; call `progress` with the number of files so far."""
    owner, watched = origin.folder_host, "-v" if progress else ""
    errors = bytearray()
    sink = _counting(progress, errors) if progress else None
    if owner.ref == host.ref if owner else host.capabilities.shares_files:
        words = ["sh", "-c", COPY, "mngr", origin.folder, work_dir, watched]
        done = spawn.run(host.argv(words), timeout=transport.DEADLINE, sink=sink)
    else:
        pack = [*PACK, origin.folder]
        unpack = host.argv([*UNPACK, work_dir, watched])
        done = transport.pipe(owner.argv(pack) if owner else pack, unpack, host, sink)
    if done.code:
        complaint = done.replace(stderr=done.stderr + bytes(errors)).complaint
        raise MngrError(f"{origin.folder} could not be copied: {complaint}")


def _counting(progress: Progress, errors: bytearray) -> Sink:
    """Return a sink that counts files: cp and tar print each file on its own line."""
    count = 0

    def sink(fd: int, data: bytes) -> None:
        nonlocal count
        if fd == 2:
            errors.extend(data)
            return
        count += data.count(b"\n")
        progress(count)

    return sink
