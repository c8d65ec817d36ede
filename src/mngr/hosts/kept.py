"""The output of a command that is kept in memory, up to a limit: a host may print endlessly."""

from __future__ import annotations

from mngr.errors import MngrError

KEPT = 1 << 29
"""Maximum bytes kept of the output of a command."""
ANSWER = 1 << 28
"""Maximum bytes kept of the answer to a script of mngr's own, such as a reading."""


class TooMuch(MngrError):
    """A command printed more than is kept."""


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self, who: str, limit: int = KEPT) -> None:
        self._who, self._limit = who, limit
        self._data = {1: bytearray(), 2: bytearray()}

    def __call__(self, stream: int, data: bytes) -> None:
        self._data[stream] += data
        if sum(map(len, self._data.values())) > self._limit:
            raise TooMuch(f"{self._who} printed more than {self._limit >> 20} MiB of output")

    @property
    def stdout(self) -> bytes:
        return bytes(self._data[1])

    @property
    def stderr(self) -> bytes:
        return bytes(self._data[2])
