"""Unpack an untrusted archive; nothing is written outside the directory."""

from __future__ import annotations

import os
import shutil

from mngr.errors import MngrError, Refused
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import tarfile


class Arrived(Struct):
    """The files now in the directory."""

    is_directory: bool
    """Whether a directory was packed, rather than one file."""
    modes: dict[str, int]
    """Of directories, by relative path; on disk they are ours alone to write for now."""
    skipped: list[str]
    """What is neither file, directory nor link."""


def unpack(path: str, root: str) -> Arrived:
    import tarfile

    arrived = Arrived(is_directory=False, modes={}, skipped=[])
    try:
        with tarfile.open(path, "r:", errorlevel=2) as archive:
            for member in archive:
                arrived = _member(archive, member, root, arrived)
    except (tarfile.TarError, EOFError) as error:
        raise MngrError(f"an incomplete archive arrived: {error}", "try again") from None
    return arrived


def _member(
    archive: tarfile.TarFile, member: tarfile.TarInfo, root: str, arrived: Arrived
) -> Arrived:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise Refused(f"an unsafe name arrived: {member.name!r}")
    if not parts:
        return arrived.replace(is_directory=True, modes={**arrived.modes, "": member.mode & 0o777})
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
        arrived.skipped.append(member.name)
    return arrived


def _refuse_link(root: str, parts: list[str], name: str) -> None:
    """Raise if a link that was unpacked earlier would redirect this path."""
    folder = root
    for part in parts[:-1]:
        folder = os.path.join(folder, part)
        if os.path.islink(folder):
            raise Refused(f"an unsafe name arrived, through a link: {name!r}")
        os.makedirs(folder, mode=0o700, exist_ok=True)


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    """Write a member; a hard link becomes a separate file, setuid and similar bits are dropped."""
    content = archive.extractfile(member)
    if content is None:
        raise Refused(f"an unsafe link arrived: {member.name!r}")
    mode = archive.getmember(member.linkname).mode if member.islnk() else member.mode
    with open(path, "xb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
        os.fchmod(file.fileno(), mode & 0o777)
