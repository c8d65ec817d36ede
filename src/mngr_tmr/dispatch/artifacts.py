"""Fetch the artifacts in `.mngr-e2e` of an agent's work directory, which are untrusted."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path, PurePosixPath

FILE_LIMIT, TOTAL_LIMIT, COUNT_LIMIT = 4 << 20, 64 << 20, 5000

# Only plain files, with limits on their size and number. A name with a newline would be two names
# to tar.
ARTIFACTS = rf"""
[ -d .mngr-e2e ] && [ ! -L .mngr-e2e ] || exit 0
rm -rf "$1" # the agent may have put a pipe or a link there
find .mngr-e2e -type f -size -{FILE_LIMIT >> 10}k ! -path '*
*' | head -n {COUNT_LIMIT} > "$1" || exit 0
tar -cf - -T "$1" 2>/dev/null | head -c {TOTAL_LIMIT}
rm -f "$1"
"""
"""A script that writes a tar archive, using the file $1 for a list."""


def unpack(data: bytes, folder: Path) -> int:
    """Write the plain files of an archive below `folder`, and return how many.

    An entry that is not plain is left out, and so is everything after a torn place.
    """
    written = 0
    room = TOTAL_LIMIT
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if written >= COUNT_LIMIT or not 0 <= member.size <= min(FILE_LIMIT, room):
                    continue
                if _is_plain(member) and _unpacked(archive, member, folder):
                    written += 1
                    room -= member.size
    except (tarfile.TarError, EOFError, ValueError, OverflowError):
        pass  # keep what came before
    return written


def _is_plain(member: tarfile.TarInfo) -> bool:
    path = PurePosixPath(member.name)
    if not member.isfile() or path.is_absolute() or ".." in path.parts:
        return False
    return 0 < len(path.parts) <= 12 and "\0" not in member.name


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> bool:
    """Write one file; return False if this machine does not accept its name."""
    target = folder.joinpath(*PurePosixPath(member.name).parts)
    content = archive.extractfile(member)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read() if content else b"")
    except (OSError, UnicodeEncodeError):
        return False
    return True
