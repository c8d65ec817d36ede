"""Unpack an untrusted archive in a private directory; nothing is written outside it."""

from __future__ import annotations

import os
import shutil

from mngr.errors import MngrError, Refused
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile


class StagingDirectory:
    """A private local directory; directories of killed processes are removed on entry."""

    def __init__(self, home: str) -> None:
        self._all = os.path.join(home, "staging")
        self.path = os.path.join(self._all, f"{os.getpid()}-{os.urandom(6).hex()}")
        self.files = os.path.join(self.path, "files")
        self.archive = os.path.join(self.path, "tar")

    def __enter__(self) -> StagingDirectory:
        os.makedirs(self.files, mode=0o700)
        for name in os.listdir(self._all):
            pid = name.partition("-")[0]
            if pid.isdigit() and not _lives(int(pid)):
                shutil.rmtree(os.path.join(self._all, name), ignore_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Arrived(Struct):
    """The files now in the directory."""

    is_directory: bool
    """Whether the archive contains a directory rather than one file."""
    modes: dict[str, int]
    """Modes of directories, by relative path; until the end only this user can write to them."""
    skipped: list[str]
    """Paths that are neither a file, a directory nor a link, and repositories of git."""


def unpack(path: str, root: str) -> Arrived:
    import tarfile

    arrived = Arrived(is_directory=False, modes={}, skipped=[])
    try:
        with tarfile.open(path, "r:", errorlevel=2) as archive:
            for member in archive:
                arrived = _member(archive, member, root, arrived)
    except (tarfile.TarError, EOFError, KeyError) as error:  # KeyError: a link to no member
        raise MngrError(f"the archive is incomplete: {error}", "try again") from None
    return arrived


def _member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, root: str, arrived: Arrived
) -> Arrived:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise Refused(f"the archive contains an unsafe path: {member.name!r}")
    if not parts:
        return arrived.replace(is_directory=True, modes={**arrived.modes, "": member.mode & 0o777})
    hidden = [at for at, part in enumerate(parts) if part.lower() == ".git"]
    if hidden:  # git would run the programs that its configuration names
        if hidden[0] == len(parts) - 1:
            arrived.skipped.append("/".join(parts))
        return arrived
    path = os.path.join(root, *parts)
    _refuse_link(root, parts, member.name)
    if member.isdir():
        os.makedirs(path, mode=0o700, exist_ok=True)
        arrived.modes["/".join(parts)] = member.mode & 0o777
    elif member.issym():
        os.symlink(member.linkname, path)
    elif member.isfile() or member.islnk():
        _write(archive, member, path)
    else:
        arrived.skipped.append("/".join(parts))
    return arrived


def _refuse_link(root: str, parts: list[str], name: str) -> None:
    """Raise if a link that was unpacked earlier would redirect this path."""
    folder = root
    for part in parts[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            raise Refused(f"the archive contains a path through a link: {name!r}")
        os.makedirs(folder, mode=0o700, exist_ok=True)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    """Write a member; a hard link becomes a separate file, setuid and similar bits are dropped."""
    content = archive.extractfile(member)
    if content is None:
        raise Refused(f"the archive contains an unsafe link: {member.name!r}")
    mode = archive.getmember(member.linkname).mode if member.islnk() else member.mode
    with open(path, "xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
        os.fchmod(file.fileno(), mode & 0o777)
