"""Read and append to files that an agent can replace, without ever blocking.

An agent owns its state directory. It can replace any file there by a pipe, a device, a link, a
directory or a huge file, on which a plain `open` or `cat` would block or read forever.
"""

from __future__ import annotations

import os
import stat

# A shell cannot open a pipe without blocking, so the script checks the type of the file first. An
# agent that replaces the file in between can delay the call up to its deadline at most.
FUNCTIONS = r"""
plain() { [ -f "$1" ] && [ ! -h "$1" ]; }
note() {
  if [ ! -e "$1" ] && [ ! -h "$1" ] || plain "$1"; then printf '%s\n' "$2" >> "$1"; fi 2>/dev/null
}
# The highest revision of $1.<rev>.json (see records.revision), and of those that are regular files;
# how many files have such names.
find_newest() {
  best=0 solid=0 count=0
  for file in "$1".*.json; do
    count=$((count + 1))
    rev=${file#"$1".}; rev=${rev%.json}
    case $rev in *[!0-9]*|''|0*|??????????*) continue ;; esac
    [ "$rev" -le "$best" ] || best=$rev
    [ "$rev" -le "$solid" ] || ! plain "$file" || solid=$rev
  done
}
"""

# Arguments: the file, the first byte to print (from 1), the number of bytes.
SHOW = FUNCTIONS + 'plain "$1" || exit 1\ntail -c +"$2" "$1" | head -c "$3"\n'
NOTE = FUNCTIONS + 'note "$1" "$2"\n'

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY


def read(path: str, limit: int) -> bytes:
    """Return the content of a regular file; one byte more than `limit` if it is larger."""
    descriptor, size = _opened(path)
    try:
        return os.read(descriptor, min(size, limit) + 1)
    finally:
        os.close(descriptor)


def read_tail(path: str, limit: int) -> bytes:
    """Return the last bytes of a regular file, or of a file that a link points to in one step."""
    if os.path.islink(path):
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    descriptor, size = _opened(path)
    try:
        return os.pread(descriptor, limit, max(0, size - limit))
    finally:
        os.close(descriptor)


def _opened(path: str) -> tuple[int, int]:
    """Return a descriptor and the size; raise OSError for anything but a regular file."""
    descriptor = os.open(path, _FLAGS)
    told = os.fstat(descriptor)
    if not stat.S_ISREG(told.st_mode):
        os.close(descriptor)
        raise OSError(0, "not a regular file", path)
    return descriptor, told.st_size
