"""Commands in the background: they run while the test continues."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

from mngr_e2e.commands import recording, tree
from mngr_e2e.commands.process import STDERR, STDOUT, Process, Start
from mngr_e2e.commands.results import PATIENCE, Chunk

FOREVER = 365 * 86400.0


class OutputMissing(AssertionError):
    """A background command did not print the expected text in time."""


class Background:
    """A command started by `E2eSession.start`, until `stop` or the end of the test."""

    def __init__(
        self, start: Start, feed: Callable[[Chunk], None], over: Callable[[Background], None]
    ) -> None:
        self.command = start.command
        self._changed = threading.Condition()
        self._feed = feed
        self._tell = over
        self._over = False
        self._process = Process(start, self._take)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        self._process.finish(FOREVER)
        self._tell(self)
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _take(self, chunk: Chunk) -> None:
        with self._changed:
            self._feed(chunk)
            self._changed.notify_all()

    @property
    def exit_code(self) -> int:
        """Return the exit code, once the command has ended."""
        return self._process.exit_code

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return not self._over

    @property
    def stdout(self) -> str:
        return self._process.output(STDOUT).decode("utf-8", "surrogateescape")

    @property
    def stderr(self) -> str:
        return self._process.output(STDERR).decode("utf-8", "surrogateescape")

    @property
    def output(self) -> str:
        """Return both streams, in the order in which they arrived."""
        whole = b"".join([chunk.data for chunk in list(self._process.chunks)])
        return whole.decode("utf-8", "surrogateescape")

    def wait_for_output(self, text: str | re.Pattern[str], timeout: float = PATIENCE) -> str:
        """Wait until a stream contains the text or pattern; return all output so far."""
        __tracebackhide__ = True
        deadline = time.monotonic() + timeout
        with self._changed:
            while not (found := self._says(text)) and not self._over:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
        if not (found or self._says(text)):
            self._fail(text, timeout)
        return self.output

    def _says(self, text: str | re.Pattern[str]) -> bool:
        streams = (self.stdout, self.stderr)
        if isinstance(text, str):
            return any(text in stream for stream in streams)
        return any(text.search(stream) for stream in streams)

    def _fail(self, text: str | re.Pattern[str], timeout: float) -> None:
        __tracebackhide__ = True
        wanted = text if isinstance(text, str) else text.pattern
        when = f"within {timeout:g} s" if self.running else "before it ended"
        raise OutputMissing(
            f"`{self.command}` did not print {wanted!r} {when}; it printed:\n{self.output}"
        )

    def wait(self, timeout: float = PATIENCE) -> int | None:
        """Return its exit code, or None if it still runs after `timeout` seconds."""
        self._thread.join(timeout)
        return None if self._thread.is_alive() else self._process.exit_code

    def type(self, text: str) -> None:
        """Type into its terminal, if it was started with `pty=True`."""
        self._process.write(text.encode("utf-8", "surrogateescape"))

    def stop(self, grace: float = 1.0) -> int:
        """End it and its descendants, with KILL after `grace` seconds; return the exit code."""
        self._process.end(grace, time.sleep)
        self._thread.join(5)
        return self._process.exit_code

    @property
    def seconds(self) -> float:
        return self._process.seconds


class Recorder(Background):
    """A command under asciinema, whose output is in the cast and not in the transcript."""

    def __init__(
        self, start: Start, command: str, cast: Path, over: Callable[[Background], None]
    ) -> None:
        super().__init__(start, lambda chunk: None, over)
        self.command = command
        self.cast = cast
        recording.pid_file(cast).write_text(str(self.pid))
        if not recording.await_header(cast, lambda: self.running):
            raise OutputMissing(f"the recording of `{command}` did not begin:\n{self.output}")

    def stop(self, grace: float = recording.GRACE) -> int:
        """Send HUP, so that the recording is complete; then end all remaining processes."""
        tree.send([self.pid], signal.SIGTERM)
        self.wait(grace)
        return super().stop()


class Idle(Background):
    """What `start` returns in no-op mode: a command that was never run."""

    def __init__(self, command: str) -> None:
        self.command = command

    exit_code = pid = 0
    running = False
    stdout = stderr = output = ""
    seconds = 0.0

    def wait_for_output(self, text: str | re.Pattern[str], timeout: float = PATIENCE) -> str:
        return ""

    def wait(self, timeout: float = PATIENCE) -> int | None:
        return 0

    def type(self, text: str) -> None:
        return None

    def stop(self, grace: float = 1.0) -> int:
        return 0
