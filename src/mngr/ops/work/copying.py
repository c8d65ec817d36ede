"""Copy files into a new work directory: whole directories, or uncommitted changes."""

from __future__ import annotations

import sys

from mngr.errors import MngrError
from mngr.git import exchange
from mngr.git import repository as git
from mngr.git.repository import Repo
from mngr.hosts import spawn
from mngr.hosts.kept import Kept
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mngr.hosts.base import Host
    from mngr.hosts.spawn import Sink
    from mngr.ops.work.sources import Source

    CountFiles = Callable[[int], None]

# Share blocks if the file system can; the second cp is for versions without --reflink. $3 is -v if
# progress is reported.
COPY = """
mkdir -p "$2" || exit 1
cp -a $3 --reflink=auto "$1/." "$2/" 2> /dev/null || cp -pPR $3 "$1/." "$2/"
"""
PACK = ["sh", "-c", 'cd "$1" && tar -cf - .', "mngr"]
UNPACK = ["sh", "-c", 'mkdir -p "$1" && tar -x $2 -pf - -C "$1"', "mngr"]


def copy_tree(
    host: Host, origin: Source, work_dir: str, progress: CountFiles | None = None
) -> None:
    """Copy every file, mode and link; call `progress` with the number of files so far."""
    owner, watched = origin.folder_host, "-v" if progress else ""
    errors = bytearray()
    sink = _counting(progress, errors) if progress else None
    if owner.ref == host.ref if owner else host.capabilities.shares_files:
        words = ["sh", "-c", COPY, "mngr", origin.folder, work_dir, watched]
        done = spawn.run(host.argv(words), timeout=transport.DEADLINE, sink=sink)
    else:
        pack = [*PACK, origin.folder]
        unpack = transport.piped(host, [*UNPACK, work_dir, watched])
        done = transport.pipe(transport.piped(owner, pack) if owner else pack, unpack, host, sink)
    if done.code:
        complaint = done.replace(stderr=done.stderr + bytes(errors)).complaint
        raise MngrError(f"{origin.folder} could not be copied: {complaint}")


def _counting(progress: CountFiles, errors: bytearray) -> Sink:
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


# uncommitted changes

TAR = 'cd "$1" && tar -cf - --null -T -'
UNTAR = 'tar -xpf - -C "$1"'
# The exit code of a pipe is that of its last command, so the first one prints its own.
BOTH = f"""
read=$( {{ {{ {TAR}; echo $? >&3; }} | (shift; {UNTAR} >&2); }} 3>&1 ) && [ "$read" = 0 ]
"""
# Also remove directories that become empty: a link or file may take their place.
REMOVE = r"""
cd "$1" && xargs -0 sh -c '
  for each; do
    rm -f "./$each"
    case $each in */*) rmdir -p "${each%/*}" 2>/dev/null ;; esac
  done; :' mngr
"""


def carry_changes(
    host: Host, source: Repo, work_dir: str, owner: Host | None, *, same_host: bool = True
) -> None:
    """Make the new tree and index differ from HEAD exactly as the old ones do.

    Files are copied as they are, because a patch would pass the filters and line endings of both
    sides. The index is sent as a patch, which git applies to the blobs themselves.
    """
    target = Repo(run=transport.cleaned(host), path=work_dir)
    top = source.line("rev-parse", "--show-toplevel")
    whole = source.replace(path=top)
    plain = ("--diff-filter=u", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    staged = whole.git("diff-index", "--cached", "-p", "--binary", *plain, "HEAD")
    if staged:
        target.git("apply", "--cached", "--binary", "--whitespace=nowarn", "-", input=staged)
    gone, changed = _differing(whole)
    changed += whole.git("ls-files", "--others", "--exclude-standard", "-z")
    if gone:
        _run(host, REMOVE, work_dir, input=gone)
    if changed and same_host:
        _run(host, BOTH, top, work_dir, input=changed)
    elif changed:
        pack = ["sh", "-c", TAR, "mngr", top]
        if owner is None:  # your own files, however large
            packed = spawn.run(pack, input=changed, timeout=600, sink=Kept(top, sys.maxsize))
        else:
            packed = source.run(pack, input=changed, timeout=600)
        packed.raise_if_failed("uncommitted files could not be read")
        _run(host, UNTAR, work_dir, input=packed.stdout)


def left_behind(source: Repo) -> list[str]:
    """Return a remark for each changed submodule: it is cloned at the commit of its parent."""
    if source.attempt("cat-file", "-e", "HEAD:.gitmodules").code:
        return []
    links = exchange.gitlinks(source, "HEAD")
    changed = [each.path for each in git.changes(source) if each.path in links]
    return [f"the changes in the submodule {path} were not copied" for path in changed]


def _differing(source: Repo) -> tuple[bytes, bytes]:
    """Return names that the work tree lacks and names that differ, each ending in NUL."""
    words = ("--name-status", "-z", "--no-renames", "--ignore-submodules=all", "HEAD")
    parts = iter(source.git("diff-index", *words).split(b"\0"))
    gone, changed = b"", b""
    for status in parts:
        if status:
            name = next(parts)
            if status == b"D":
                gone += name + b"\0"
            else:
                changed += name + b"\0"
    return gone, changed


def _run(host: Host, script: str, *words: str, input: bytes) -> None:
    done = host.run(["sh", "-c", script, "mngr", *words], input=input, timeout=3600)
    done.raise_if_failed("uncommitted changes could not be copied")
