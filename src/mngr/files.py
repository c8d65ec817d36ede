"""Replace files of this machine as a whole."""

from __future__ import annotations

import os
import stat


def replace(path: str, content: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
    """Write a file under a temporary name and rename it; a failure leaves only the old file.

    An existing file keeps its permissions. `gc` knows the temporary names of killed processes.
    """
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as file:
            if os.path.exists(path):
                os.fchmod(descriptor, stat.S_IMODE(os.stat(path).st_mode))
            file.write(content)
            if durable:
                file.flush()
                os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            error.filename = error.filename or path
        raise
