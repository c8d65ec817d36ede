"""Copy files between an agent's work directory and this machine.

They are sent as a tar into a staging directory, compared with the existing files, and then renamed
into place one by one, so an interrupted transfer leaves no partial file. Agents control what is in
their directories, so nothing is written through a link or outside the target.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError, NotFound, Refused, UsageError
from mngr.hosts import spawn
from mngr.hosts.kept import ANSWER, Kept
from mngr.model.completed import Completed
from mngr.model.struct import Struct
from mngr.ops.look.listing import Agent
from mngr.ops.steps import step
from mngr.ops.work import placing, transport
from mngr.ops.work.placing import Placement
from mngr.ops.work.risk import summary
from mngr.ops.work.staging import Arrived, StagingDirectory, unpack

MISSING, OUTSIDE = 44, 45

# $1 work directory, $2 path in it. The .git at the top is left out.
READ = r"""
cd "$1" || exit 44
top=$(pwd -P)
[ -e "$2" ] || [ -L "$2" ] || exit 44
case $2 in */*) cd "${2%/*}" || exit 44 ;; esac
name=${2##*/}
if [ -d "$name" ] && [ ! -L "$name" ]; then cd "./$name" || exit 44; name=.; fi
here=$(pwd -P)
case $here/ in "$top"/*) ;; *) exit 45 ;; esac
if [ "$here" = "$top" ] && [ "$name" = . ]; then tar -cf - --exclude=./.git .
else tar -cf - "./$name"; fi
"""


class Copied(Struct):
    """The result of copying files, or of a dry run."""

    target: str
    files: tuple[str, ...] = ()
    """New and changed files."""
    same: int = 0
    """The number of files that were already there."""
    skipped: tuple[str, ...] = ()
    """Paths that are neither a file, a directory nor a link, and repositories of git."""


def inside_work_dir(path: str) -> str:
    """Return a path below the work directory; raise if it leaves it."""
    clean = os.path.normpath(path or ".")
    if os.path.isabs(clean) or clean == ".." or clean.startswith("../"):
        raise UsageError(f"PATH: {path!r} is not inside the work directory")
    return clean


def is_directory(agent: Agent, path: str) -> bool:
    there = os.path.join(agent.record.work_dir, path)
    return agent.host.run(["test", "-d", there], timeout=30).code == 0


def _placed(done: Completed, target: str, force: bool) -> Placement:
    """Return what the script did, or would do; raise if something is in the way."""
    found = placing.parse(done.stdout)
    if found.blocked:
        raise Refused(
            f"a directory or link in {target} is in the way of: {summary(found.blocked)}",
            "move it, or choose another place",
        )
    if found.differing and not force:
        raise Refused(
            f"these files in {target} differ: {summary(found.differing)}",
            "use --force to replace them",
        )
    return found.replace(complete=found.complete and not done.code)


# pull


def pull(
    home: str, agent: Agent, path: str, target: str, *, force: bool = False, dry_run: bool = False
) -> Copied:
    """Copy a file or directory of the work directory to exactly `target`."""
    path = inside_work_dir(path)
    with StagingDirectory(home) as stage:
        arrived = _receive(agent, path, stage)
        root = target if arrived.is_directory else os.path.dirname(target)
        if not arrived.is_directory:
            _rename_only(stage.files, os.path.basename(target))
        step("staged")
        folders = {os.path.join(root, each): mode for each, mode in arrived.modes.items() if each}
        new = [each for each in folders if not os.path.isdir(each)]
        anchor, below = _existing(root)
        words = [stage.path, anchor, below, "force" if force else "", "dry" if dry_run else ""]
        done = spawn.run(["sh", "-c", placing.PLACE, "mngr", *words], timeout=transport.DEADLINE)
    found = _placed(done, root, force)
    if not found.complete:
        raise MngrError(f"{path} could not be copied to {target}: {done.complaint}")
    for each in () if dry_run else sorted(new, reverse=True):
        os.chmod(each, folders[each])
    names = (os.path.relpath(each, below) for each in (*found.new, *found.differing))
    return Copied(
        target=target, files=tuple(names), same=len(found.same), skipped=tuple(arrived.skipped)
    )


def _existing(folder: str) -> tuple[str, str]:
    """Return the nearest directory that exists, and the rest of the path, at least `.`."""
    anchor = folder
    while not os.path.isdir(anchor):
        anchor = os.path.dirname(anchor)
    return anchor, os.path.relpath(folder, anchor)


def _rename_only(folder: str, name: str) -> None:
    found = os.listdir(folder)
    if len(found) != 1:
        raise Refused("a pipe, a socket, a device or a git repository cannot be copied by itself")
    os.rename(os.path.join(folder, found[0]), os.path.join(folder, name))


def _receive(agent: Agent, path: str, stage: StagingDirectory) -> Arrived:
    errors = Kept(f"host {agent.host.ref.name}", ANSWER)
    with open(stage.archive, "wb") as file:

        def sink(fd: int, data: bytes) -> None:
            file.write(data) if fd == 1 else errors(fd, data)

        words = ["sh", "-c", READ, "mngr", agent.record.work_dir, path]
        done = agent.host.run(words, timeout=transport.DEADLINE, sink=sink)
    if done.code == MISSING:
        raise NotFound(f"{agent.name} has no {path!r} in its work directory")
    if done.code == OUTSIDE:
        raise Refused(f"{path!r} is outside the work directory of {agent.name}")
    if done.code:
        complaint = done.replace(stderr=errors.stderr).complaint
        raise MngrError(f"{path} of {agent.name} could not be read: {complaint}")
    arrived = unpack(stage.archive, stage.files)
    os.unlink(stage.archive)
    return arrived


# push


def push(
    agent: Agent, local: str, path: str, *, force: bool = False, dry_run: bool = False
) -> Copied:
    """Copy a file or directory of this machine to exactly `path` in the work directory."""
    path = inside_work_dir(path)
    host, record = agent.host, agent.record
    whole = os.path.isdir(local) and not os.path.islink(local)
    folder, name = (local, ".") if whole else os.path.split(os.path.abspath(local))
    # The work directory's own .git must not be overwritten.
    spared = ["--exclude=./.git"] if path == "." else []
    pack = ["tar", "-cf", "-", *spared, "-C", folder, name if whole else f"./{name}"]
    parent, new_name = (path, "") if whole else os.path.split(path)
    words = [host.home, new_name, record.work_dir, parent or "."]
    words += ["force" if force else "", "dry" if dry_run else ""]
    script = ["sh", "-c", placing.UNPACK_AND_PLACE, "mngr", *words]
    done = transport.pipe(pack, transport.piped(host, script), host)
    step("files_sent")
    where = os.path.normpath(os.path.join(record.work_dir, path))
    found = _placed(done, record.work_dir, force)
    if not found.complete:
        transport.require_answer(host)
        raise MngrError(f"{local} could not be copied to {agent.name}: {done.complaint}")
    return Copied(target=where, files=(*found.new, *found.differing), same=len(found.same))
