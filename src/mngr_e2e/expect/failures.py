"""Failure messages: the claim, the difference, the command and its output.

`with soft():` collects failures and raises them together at its end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType

from mngr_e2e.commands.results import CommandResult
from mngr_e2e.expect.matchers import plural
from mngr_e2e.session import E2eSession

__tracebackhide__ = True  # pytest then shows the line of the test

STREAM_LIMIT = 4_000
TRANSCRIPT_LIMIT = 8_000
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class ExpectationFailed(AssertionError):
    """An expectation did not hold; the message shows why."""


_group: ContextVar[list[str] | None] = ContextVar("soft expectations", default=None)


def fail(headline: str, detail: str = "", result: CommandResult | None = None) -> None:
    """Raise ExpectationFailed; within `soft()`, add it to the list instead."""
    parts = [headline, detail, _context(result) if result else _transcript()]
    message = "\n\n".join(part.rstrip("\n") for part in parts if part)
    group = _group.get()
    if group is None:
        raise ExpectationFailed(message)
    group.append(f"{_place()}: {message}")


class soft:  # noqa: N801 - it is used as a verb
    """`with soft():` checks all expectations inside, and raises all failures at its end."""

    # A class, because the frames of contextlib would be in the test's traceback.

    def __enter__(self) -> None:
        self.failures: list[str] = []
        self.token = _group.set(self.failures)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        _group.reset(self.token)
        if not self.failures:
            return
        if error is not None:
            error.add_note(_summary(self.failures))
        else:
            fail(_summary(self.failures))


def origin(value: object) -> tuple[CommandResult | None, str]:
    """Return the command whose output a value is, and the stream, from the caller's variables.

    In `expect(result.stdout)` the value is a plain string; its result is in the test's variables.
    For text derived from it, the latest result there is assumed.
    """
    latest: CommandResult | None = None
    for frame in _callers():
        results = [each for each in frame.f_locals.values() if isinstance(each, CommandResult)]
        for result in reversed(results):
            for name in ("stdout", "stderr", "stdout_bytes", "stderr_bytes"):
                if value is getattr(result, name):
                    return result, name.removesuffix("_bytes")
        latest = latest or (results[-1] if results else None)
    return latest, ""


def _callers(depth: int = 3) -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and depth:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            depth -= 1
            yield frame
        frame = frame.f_back


def _place() -> str:
    frame = next(_callers(1), None)
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else "?"


def _summary(failures: list[str]) -> str:
    head = f"{plural(len(failures), 'expectation')} did not hold"
    return "\n\n".join([head, *(f"{number}. {each}" for number, each in enumerate(failures, 1))])


def _transcript() -> str:
    """Return the transcript of the caller's session: `e2e.run(…).stdout` leaves no result."""
    for frame in _callers():
        for value in list(frame.f_locals.values()):
            if isinstance(value, E2eSession):
                return _section("transcript so far", value.transcript.text, TRANSCRIPT_LIMIT)
    return ""


def _context(result: CommandResult) -> str:
    ended = "timed out" if result.timed_out else f"exit {result.exit_code}"
    parts = [
        f"$ {result.command}\n({ended} after {result.seconds:.2f} s)",
        _section("stdout", result.stdout, STREAM_LIMIT),
        _section("stderr", result.stderr, STREAM_LIMIT),
        _section("transcript so far", result.transcript, TRANSCRIPT_LIMIT),
    ]
    return "\n".join(parts)


def _section(title: str, text: str, limit: int) -> str:
    safe = text.encode("utf-8", "backslashreplace").decode()  # reports must be printable
    if not safe:
        return f"--- {title}: empty"
    return f"--- {title}\n{_clipped(safe, limit).rstrip(chr(10))}"


def _clipped(text: str, limit: int) -> str:
    """Return the beginning and the end, where errors usually are."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
