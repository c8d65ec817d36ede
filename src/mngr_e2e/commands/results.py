"""The result of a command."""

from __future__ import annotations

from dataclasses import dataclass, field

PATIENCE = 30.0
"""Default seconds to wait for an event: long, because a busy machine is slow."""


@dataclass(frozen=True)
class Chunk:
    """Bytes that arrived together on stdout (1) or stderr (2), `at` seconds after the start."""

    stream: int
    at: float
    data: bytes


@dataclass(frozen=True)
class CommandResult:
    """One finished command. Text is UTF-8 with surrogate escapes, so no byte is lost."""

    command: str
    comment: str
    exit_code: int
    """As in a shell: 128 + n for signal n; 124 after a timeout."""
    stdout: str
    stderr: str
    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)
    seconds: float
    timed_out: bool
    transcript: str = field(repr=False)
    """The session's transcript so far, for failure messages."""
    chunks: tuple[Chunk, ...] = field(default=(), repr=False)
    """Both streams, interleaved as they arrived."""
