"""`E2eSession`, the `e2e` fixture: it runs commands in the test's own home and work directory."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mngr_e2e.artifacts import CommandRecord, ResultFile, TestRecord
from mngr_e2e.blocks import dedented
from mngr_e2e.commands import recording, tree
from mngr_e2e.commands.background import Background, Idle, Recorder
from mngr_e2e.commands.process import STDERR, STDOUT, Process, Start
from mngr_e2e.commands.results import CommandResult
from mngr_e2e.environment import Directories
from mngr_e2e.redaction import Redactor
from mngr_e2e.settings import Settings
from mngr_e2e.transcript import Stretch, Transcript


class SetupFailed(Exception):
    """The project's setup or teardown command failed."""


class E2eSession:
    """Runs commands in a test's own directories, and records them."""

    def __init__(
        self, place: Directories, settings: Settings, record: TestRecord, env: dict[str, str]
    ) -> None:
        self.root, self.home, self.work = place.root, place.home, place.work
        self.artifacts = place.artifacts
        self.settings = settings
        self.env = env
        """The environment of every command; a test may change it."""
        self.redactor = Redactor(env, settings.redactions)
        self.transcript = Transcript(place.artifacts / "transcript.txt", self.redactor)
        self.record_of_test = record
        self._place = place
        self._file = ResultFile(place.artifacts)
        self._id = secrets.token_hex(6)
        self._count = 0
        self._before = tree.snapshot()
        self._lock = threading.Lock()
        self._running: list[Background] = []
        self._closing = False

    def write_tutorial_block(self, block: str) -> None:
        """Cite the block of the tutorial that this test is about, word for word."""
        text = self.redactor(dedented(block))
        if text not in self.record_of_test.blocks:
            self.record_of_test.blocks.append(text)
        self.save()

    def redact(self, secret: str) -> None:
        """Keep a value out of the artifacts, and remove it from what was written before."""
        self.redactor.add(secret)
        self.transcript.redact_again()
        record = self.record_of_test
        with self._lock:
            record.blocks = [self.redactor(block) for block in record.blocks]
            record.commands = [
                replace(each, text=self.redactor(each.text)) for each in record.commands
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
        """Run a shell command to its end; after `timeout` seconds, kill it and its children."""
        stretch, index = self._began(command, comment, env)
        if self.record_of_test.noop:
            self._ended(index, 0, 0.0)
            nothing = ("", "", b"", b"", 0.0, False)
            return CommandResult(command, comment, 0, *nothing, self.transcript.text)
        limit = self.settings.timeout if timeout is None else timeout
        process = Process(self._start(command, env, cwd, stdin, pty), stretch.feed)
        process.finish(limit)
        remark = f"timed out after {limit:g} s" if process.timed_out else ""
        stretch.ended(process.exit_code, remark)
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
        """Run a shell command in the background; the end of the test ends it."""
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
            # The exit code of a command that the session ended itself is not recorded.
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
        """Run a shell command like `start`, in a terminal recorded as `<name>.cast`."""
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
            self.transcript.text,
            tuple(process.chunks),
        )

    # --- the record -------------------------------------------------------------------------

    def _began(
        self, command: str, comment: str, env: Mapping[str, str] | None, background: bool = False
    ) -> tuple[Stretch, int]:
        self.redactor.learn({**self.env, **(env or {})})
        text = self.redactor.command(command)
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

    def finish(self) -> None:
        """Write the record for the last time, when the outcome is known."""
        self.record_of_test.is_over = True
        self.save()
        self._file.close()

    # --- the ends ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Run the project's setup command."""
        self._hook("setup", self.settings.setup)

    def _hook(self, name: str, command: str) -> None:
        if not command:
            return
        start = self._start(self._place.filled(command), None, None, None, False)
        process = Process(start, lambda chunk: None)
        process.finish(self.settings.timeout)
        if process.exit_code:
            said = (process.output(STDOUT) + process.output(STDERR)).decode("utf-8", "replace")
            raise SetupFailed(
                f"{name} of [tool.mngr_e2e] failed with exit code {process.exit_code}: {said}"
            )

    def close(self) -> None:
        """Run the project's teardown command, then end the processes that the test left."""
        self._closing = True
        recording.end_all(self.artifacts, self._before)
        try:
            self._hook("teardown", self.settings.teardown)
        finally:
            tree.end(self._left, 1.0, time.sleep)
            self._settle()
            self.save()

    def _left(self) -> set[int]:
        """Return the test's processes: a daemon may drop the mark, but keeps its home or limit."""
        limit = tree.limit(self.env.get(tree.MARK, ""), f"/{self._id}.")
        marked = tree.marked([f"/{self._id}.", f"HOME={self.home}\0"], self._before)
        return marked | tree.limited(limit, tree.OF_TEST, self._before)

    def _settle(self) -> None:
        """Wait for the reading threads, and record the casts that have begun."""
        for background in self._running:
            background.wait(5)
        self.transcript.close()
        casts = recording.named(self.artifacts, ".cast")
        whole = [cast.name for cast in casts if recording.tidy(cast, self.redactor)]
        self.record_of_test.casts = whole
