"""What a command left behind."""

from __future__ import annotations

from dataclasses import dataclass, field

PATIENCE = 30.0
"""Seconds that something awaited may take, unless the test says otherwise: a busy machine is slow,
and what comes is not waited for any longer."""


@dataclass(frozen=True)
class Chunk:
    """Bytes that arrived together: on stdout (1) or stderr (2), so many seconds after the start."""

    stream: int
    at: float
    data: bytes


@dataclass(frozen=True)
class CommandResult:
    """One finished command. Text is UTF-8 with surrogate escapes, so no byte is lost."""

    command: str
    comment: str
    exit_code: int
    """As a shell gives it: 128 + n for signal n; 124 when the time was over."""
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
