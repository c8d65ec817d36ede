"""A command that goes on while the test does."""

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
    """What a background command was to say, it did not say in time."""


class Background:
    """Started by `E2eSession.start`; ended by `stop`, or with the test."""

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
        """Once it has ended."""
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
        """Both streams, as they arrived."""
        whole = b"".join([chunk.data for chunk in list(self._process.chunks)])
        return whole.decode("utf-8", "surrogateescape")

    def wait_for_output(self, text: str | re.Pattern[str], timeout: float = PATIENCE) -> str:
        """Until either stream holds the text or the pattern; gives back all output so far."""
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
            f"`{self.command}` did not say {wanted!r} {when}; it said:\n{self.output}"
        )

    def wait(self, timeout: float = PATIENCE) -> int | None:
        """Its exit code, or None if it still runs after `timeout` seconds."""
        self._thread.join(timeout)
        return None if self._thread.is_alive() else self._process.exit_code

    def type(self, text: str) -> None:
        """On its terminal, when it was started with one."""
        self._process.write(text.encode("utf-8", "surrogateescape"))

    def stop(self, grace: float = 1.0) -> int:
        """TERM its whole tree, KILL what is left after `grace` seconds; gives the exit code."""
        self._process.end(grace, time.sleep)
        self._thread.join(5)
        return self._process.exit_code

    @property
    def seconds(self) -> float:
        return self._process.seconds


class Recorder(Background):
    """asciinema around a command; its screen goes to the cast, not to the transcript."""

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
        """Hang up, so that the recording is whole; then end what ignored it."""
        tree.send([self.pid], signal.SIGTERM)
        self.wait(grace)
        return super().stop()


class Idle(Background):
    """What `start` gives in no-op mode: it never ran, and says nothing."""

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
