"""Write files of this machine as a whole: a failure leaves only the old file, or none."""

from __future__ import annotations

import os
import stat


def replace(
    path: str, content: bytes, mode: int = 0o600, *, durable: bool = False, keep_mode: bool = True
) -> None:
    """Write a file under a temporary name and rename it; make its folder if it is missing.

    With `keep_mode`, an existing file keeps its permissions.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = _beside(path, content, mode, durable, keep_mode)
    try:
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def create(path: str, content: bytes, *, durable: bool = False) -> bool:
    """Write a file under a temporary name and link it; return False if the name is taken."""
    temporary = _beside(path, content, 0o600, durable)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        os.unlink(temporary)
    return True


def remove(path: str) -> None:
    """Remove a file, if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _beside(path: str, content: bytes, mode: int, durable: bool, keep_mode: bool = False) -> str:
    """Return a temporary file; `gc` knows the names of those that killed processes left."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(descriptor, "wb") as file:
            if keep_mode and os.path.exists(path):
                os.fchmod(descriptor, stat.S_IMODE(os.stat(path).st_mode))
            file.write(content)
            if durable:
                file.flush()
                os.fsync(descriptor)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            error.filename = error.filename or path
        raise
    return temporary
