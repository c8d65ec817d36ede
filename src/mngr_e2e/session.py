"""`E2eSession`: the test's own home and work directory, and the commands it runs there."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mngr_e2e import artifacts
from mngr_e2e.artifacts import CommandRecord, ResultFile, TestRecord
from mngr_e2e.commands import recording, tree
from mngr_e2e.commands.background import Background, Idle, Recorder
from mngr_e2e.commands.process import STDERR, STDOUT, Process, Start
from mngr_e2e.commands.results import CommandResult
from mngr_e2e.environment import filled
from mngr_e2e.redaction import Redactor
from mngr_e2e.settings import PLACES, Settings
from mngr_e2e.transcript import Stretch, Transcript


class SetupFailed(Exception):
    """The project's setup or teardown command did not succeed."""


@dataclass(frozen=True)
class Place:
    """Where a session lives."""

    root: Path
    """The project."""
    home: Path
    work: Path
    artifacts: Path


class E2eSession:
    """Runs commands and keeps the record of them."""

    def __init__(
        self,
        place: Place,
        settings: Settings,
        record: TestRecord,
        transcript: Transcript,
        redact: Redactor,
        env: Mapping[str, str],
    ) -> None:
        self.root, self.home, self.work = place.root, place.home, place.work
        self.artifacts = place.artifacts
        self.settings = settings
        self.env = dict(env)
        """What every command gets; a test may change it."""
        self.transcript = transcript
        self.record_of_test = record
        self._redact = redact
        self._file = ResultFile(place.artifacts)
        self._id = secrets.token_hex(6)
        self._count = 0
        self._before = tree.snapshot()
        self._lock = threading.Lock()
        self._running: list[Background] = []
        self._closing = False

    def write_tutorial_block(self, block: str) -> None:
        """Say which block of the tutorial this test is about, word for word."""
        text = self._redact(artifacts.dedented(block))
        if text not in self.record_of_test.blocks:
            self.record_of_test.blocks.append(text)
        self.save()

    def redact(self, secret: str) -> None:
        """Keep this out of the artifacts, also where it was said before."""
        self._redact.add(secret)
        self.transcript.redact_again()
        record = self.record_of_test
        with self._lock:
            record.blocks = [self._redact(block) for block in record.blocks]
            record.commands = [
                replace(each, text=self._redact(each.text)) for each in record.commands
            ]
        self.save()

    def run(
        self,
        command: str,
        comment: str = "",
        *,
        timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stdin: str | bytes | None = None,
        pty: bool = False,
    ) -> CommandResult:
        """Run a shell command to its end; after `timeout` seconds its whole tree is ended."""
        stretch, index = self._began(command, comment, env)
        if self.record_of_test.noop:
            self._ended(index, 0, 0.0)
            return CommandResult(command, comment, 0, "", "", b"", b"", 0.0, False, self._text)
        limit = self.settings.timeout if timeout is None else timeout
        process = Process(self._start(command, env, cwd, stdin, pty), stretch.feed)
        process.finish(limit)
        stretch.ended(process.exit_code, _remark(process, limit))
        self._ended(index, process.exit_code, process.seconds, process.timed_out)
        return self._result(process, comment)

    def _start(
        self,
        command: str,
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
        stdin: str | bytes | None,
        pty: bool,
    ) -> Start:
        self._count += 1
        return Start(
            command,
            {**self.env, **(env or {})},
            str(self.work / (cwd or "")),
            f"/{self._id}.{self._count}/",
            self.settings.shell,
            stdin.encode("utf-8", "surrogateescape") if isinstance(stdin, str) else stdin,
            pty,
            before=self._before,
        )

    def start(
        self,
        command: str,
        comment: str = "",
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        stdin: str | bytes | None = None,
        pty: bool = False,
    ) -> Background:
        """Run a shell command while the test goes on; what still runs at its end is ended."""
        stretch, index = self._began(command, comment, env, background=True)
        if self.record_of_test.noop:
            self._ended(index, 0, 0.0)
            return Idle(command)
        start = self._start(command, env, cwd, stdin, pty)
        background = Background(start, stretch.feed, self._when_over(index, stretch))
        self._running.append(background)
        return background

    def _when_over(self, index: int, stretch: Stretch) -> Callable[[Background], None]:
        def over(background: Background) -> None:
            # That we ended what was left is not worth a line.
            code = 0 if self._closing else background.exit_code
            stretch.ended(code, f"from {self.record_of_test.commands[index].text}")
            self._ended(index, background.exit_code, background.seconds)

        return over

    def record(
        self,
        command: str,
        comment: str = "",
        *,
        name: str = "",
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        columns: int = 80,
        rows: int = 24,
    ) -> Background:
        """Like `start`, on a terminal of its own that is recorded as `<name>.cast`."""
        stretch, index = self._began(command, comment, env, background=True)
        if self.record_of_test.noop:
            self._ended(index, 0, 0.0)
            return Idle(command)
        cast = recording.claim(self.artifacts, name or f"recording-{index + 1}")
        self.transcript.note(f"recorded in {cast.name}")
        wrapped = recording.rec(command, cast, columns, rows, {**self.env, **(env or {})})
        start = self._start(wrapped, env, cwd, None, True)
        start = replace(start, columns=columns, rows=rows)
        recorder = Recorder(start, command, cast, self._when_over(index, stretch))
        self._running.append(recorder)
        return recorder

    @property
    def _text(self) -> str:
        return self.transcript.text

    def _result(self, process: Process, comment: str) -> CommandResult:
        stdout, stderr = process.output(STDOUT), process.output(STDERR)
        return CommandResult(
            process.start.command,
            comment,
            process.exit_code,
            stdout.decode("utf-8", "surrogateescape"),
            stderr.decode("utf-8", "surrogateescape"),
            stdout,
            stderr,
            process.seconds,
            process.timed_out,
            self._text,
            tuple(process.chunks),
        )

    # --- the record -------------------------------------------------------------------------

    def _began(
        self, command: str, comment: str, env: Mapping[str, str] | None, background: bool = False
    ) -> tuple[Stretch, int]:
        self._redact.learn({**self.env, **(env or {})})
        text = self._redact.command(command)
        stretch = self.transcript.began(text, comment, background)
        start = round(time.monotonic() - self.record_of_test.began, 4)
        with self._lock:
            commands = self.record_of_test.commands
            commands.append(CommandRecord(text, None, 0.0, start))
            index = len(commands) - 1
        self.save()
        return stretch, index

    def _ended(self, index: int, code: int, seconds: float, timed_out: bool = False) -> None:
        with self._lock:
            commands = self.record_of_test.commands
            commands[index] = replace(
                commands[index], exit_code=code, seconds=round(seconds, 4), timed_out=timed_out
            )
        self.save()

    def save(self) -> None:
        with self._lock:
            self._file.write(self.record_of_test)

    def redacted(self, text: str) -> str:
        return self._redact(text)

    def finish(self) -> None:
        """The outcome is known: the last word on this test."""
        self.record_of_test.is_over = True
        self.save()
        self._file.close()

    # --- the ends ---------------------------------------------------------------------------

    def prepare(self) -> None:
        self._hook("setup", self.settings.setup)

    def _hook(self, name: str, command: str) -> None:
        if not command:
            return
        places = {place: str(getattr(self, place)) for place in PLACES}
        start = self._start(filled(command, places), None, None, None, False)
        process = Process(start, lambda chunk: None)
        process.finish(self.settings.timeout)
        if process.exit_code:
            said = (process.output(STDOUT) + process.output(STDERR)).decode("utf-8", "replace")
            raise SetupFailed(f"{name} of [tool.mngr_e2e] gave {process.exit_code}: {said}")

    def close(self) -> None:
        """End what the test left running."""
        self._closing = True
        recording.end_all(self.artifacts, self._before)
        try:
            self._hook("teardown", self.settings.teardown)
        finally:
            tree.end(self._left, 1.0, time.sleep)
            self._settle()
            self.save()

    def _left(self) -> set[int]:
        """A daemon may clear its environment of our mark, but it keeps its home, or its limit."""
        limit = tree.limit(self.env.get(tree.MARK, ""), f"/{self._id}.")
        marked = tree.marked([f"/{self._id}.", f"HOME={self.home}\0"], self._before)
        return marked | tree.limited(limit, tree.OF_TEST, self._before)

    def _settle(self) -> None:
        """Nothing runs any more: let the readers finish, and keep the casts that began."""
        for background in self._running:
            background.wait(5)
        self.transcript.close()
        casts = recording.named(self.artifacts, ".cast")
        whole = [cast.name for cast in casts if recording.tidy(cast, self._redact)]
        self.record_of_test.casts = whole


def _remark(process: Process, limit: float) -> str:
    return f"timed out after {limit:g} s" if process.timed_out else ""
