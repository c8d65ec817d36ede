"""The transcript of a session: comments, commands, output by line, exit codes.

It is written immediately, so it is complete up to the moment at which a test run is killed.
"""

from __future__ import annotations

import threading
from pathlib import Path

from mngr_e2e.commands.results import Chunk
from mngr_e2e.redaction import Redactor

LONGEST = 1 << 20  # bytes of one command's output; its result contains all of them
PREFIX = {1: "", 2: "! "}


class Transcript:
    """The file. A background command writes to it from its own thread."""

    def __init__(self, path: Path, redact: Redactor) -> None:
        # Unbuffered: nothing is lost if pytest is killed.
        self._file = open(path, "wb", buffering=0)
        self._redact = redact
        self.text = ""
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        text = self._redact(text)
        with self._lock:
            self.text += text
            if not self._file.closed:
                self._file.write(text.encode("utf-8", "surrogateescape"))

    def redact_again(self) -> None:
        """Redact what was written before a new secret was known."""
        with self._lock:
            self.text = self._redact(self.text)
            self._file.seek(0)
            self._file.write(self.text.encode("utf-8", "surrogateescape"))
            self._file.truncate()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def began(self, command: str, comment: str, background: bool = False) -> Stretch:
        lines = [f"# {line}".rstrip() for line in comment.splitlines()]
        first, *more = command.strip("\n").split("\n")
        lines += [f"$ {first}", *(f"> {line}" for line in more)]
        if background:
            lines[-1] += " &"
        self.add("\n".join(lines) + "\n")
        return Stretch(self)

    def note(self, text: str) -> None:
        self.add(f"# {text}\n")


class Stretch:
    """The part of one command. Lines are written when they are complete."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._partial = {1: b"", 2: b""}
        self._shown = 0
        self._hidden = 0

    def feed(self, chunk: Chunk) -> None:
        if self._shown >= LONGEST:
            self._hidden += len(chunk.data)
            return
        self._shown += len(chunk.data)
        whole, newline, rest = chunk.data.rpartition(b"\n")
        if not newline:
            self._partial[chunk.stream] += chunk.data
            return
        self._lines(chunk.stream, self._partial[chunk.stream] + whole)
        self._partial[chunk.stream] = rest

    def _lines(self, stream: int, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        self._transcript.add("".join(f"{PREFIX[stream]}{line}\n" for line in text.split("\n")))

    def ended(self, exit_code: int, remark: str = "") -> None:
        for stream, data in self._partial.items():
            if data:
                self._lines(stream, data)
        self._partial = {1: b"", 2: b""}
        if self._hidden:
            self._transcript.note(f"{self._hidden} more bytes are not shown")
        if exit_code:
            self._transcript.add(f"? {exit_code} {remark}".rstrip() + "\n")
