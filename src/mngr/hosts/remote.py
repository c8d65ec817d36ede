"""Remote hosts: each call proves that the remote command ran to its end.

Exit codes do not distinguish a dead host from a failed command: srun exits 0 when its node dies,
ssh and `docker exec` exit 255 or 1, as the command itself may. So every call ends with a seal, a
nonce and the command's own code, on both streams. If it is missing, the host is lost. A first mark
shows where the command's own output begins, because remote shells may print a greeting.
"""

from __future__ import annotations

import os
import time

from mngr.errors import MngrError, TimedOut, Unreachable
from mngr.hosts import spawn, tmux
from mngr.hosts.base import QUIET
from mngr.hosts.kept import Kept, TooMuch
from mngr.hosts.shell import ShellHost
from mngr.model.completed import Completed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.base import HostReading
    from mngr.hosts.ledger import HostNote
    from mngr.hosts.spawn import Running, Sink

SEALED = r"""
printf '\n%s\n' "$0"; printf '\n%s\n' "$0" >&2
"$@"; code=$?
printf '\n%s %s\n' "$0" "$code"; printf '\n%s %s\n' "$0" "$code" >&2
"""

# The nonce is sent on stdin and not in a command line, so that this call does not end itself.
END = r"""
read -r nonce
[ -n "$nonce" ] || exit  # it would be part of every command line
if [ -d /proc/self ]; then  # many images have no ps
  for each in $(printf '%s\n' "$nonce" | grep -lsF -f - /proc/[0-9]*/cmdline); do
    IFS= read -r stat_line < "${each%cmdline}stat" || continue
    set -- ${stat_line##*) }
    kill -s TERM -- "-$3"
  done
else
  ps -A -o pgid= -o args= | while read -r group args; do
    case $args in *"$nonce"*) kill -s TERM -- "-$group" ;; esac
  done
fi 2> /dev/null
"""

LIMIT = 1 << 16
"""Maximum bytes kept of the output before the command starts."""


class Unheard(Unreachable):
    """The client reported success, but no output arrived: seen with srun on a busy machine."""


class Seal:
    """Passes on the output between the two marks; holds back what may be the start of a mark."""

    def __init__(self, nonce: str, sink: Sink) -> None:
        self._begin, self._end = f"\n{nonce}\n".encode(), f"\n{nonce} ".encode()
        self._sink = sink
        self.begun: set[int] = set()
        self.greeting = b""
        """What stdout had before the command began."""
        self._held = {1: b"", 2: b""}
        self.codes: dict[int, int] = {}
        self.heard = time.monotonic()

    def __call__(self, stream: int, chunk: bytes) -> None:
        self.heard = time.monotonic()
        if stream in self.codes:
            return  # a process the command left behind is still writing
        data = self._held[stream] + chunk
        if stream not in self.begun:
            before, mark, rest = data.partition(self._begin)
            if stream == 1:
                self.greeting = before[-LIMIT:]
            if not mark:
                # Output of the transport, or a greeting of the shell.
                self._held[stream] = data[-LIMIT:]
                return
            self.begun.add(stream)
            data = rest
        self._held[stream] = self._passed(stream, data)

    def _passed(self, stream: int, data: bytes) -> bytes:
        """Pass on output; return the part that must wait for more."""
        at = self._found(stream, data)
        if at < 0:
            # Only a newline can begin the mark, so everything before it is passed on at once.
            at = data.rfind(b"\n", max(0, len(data) - len(self._end) + 1))
            at = at if self._end.startswith(data[at:]) else -1
        keep = len(data) - at if at >= 0 else 0
        if ready := data[: len(data) - keep]:
            self._sink(stream, ready)
        return data[len(data) - keep :]

    def _found(self, stream: int, data: bytes) -> int:
        """Return where the last mark is, even if the rest of its code is missing; else -1."""
        at = data.find(self._end)
        while at >= 0:
            after = at + len(self._end)
            code, newline, _ = data[after : after + 4].partition(b"\n")
            if newline and code.isdigit():
                self.codes[stream] = int(code)
                return at
            if not newline and len(code) < 4 and (code.isdigit() or not code):
                return at
            # Without a code, it is output of a command that knows the nonce.
            at = data.find(self._end, at + 1)
        return -1

    @property
    def broken(self) -> bool:
        return not self.codes

    def complete(self) -> bool:
        return len(self.codes) == 2

    def complaint(self, stderr: bytes, code: int) -> bytes:
        """Return what the client said, once it is clear that no seal follows."""
        told = stderr + self._held[2]
        # A refusal of the login shell; ssh itself fails with 255, after any greeting.
        refused = code not in (0, 255) and 1 not in self.begun
        return self.greeting if refused and not told.strip() else told


class RemoteHost(ShellHost):
    """A host that runs commands remotely; subclasses implement `argv` and `greeted`."""

    def greeted(self) -> HostNote:
        """Return the note of the host, with its home and mngr's user on it."""
        raise AssertionError("every RemoteHost defines greeted")

    @property
    def home(self) -> str:  # type: ignore[override]
        return self.greeted().home

    @property
    def socket(self) -> str:  # type: ignore[override]
        note = self.greeted()
        return tmux.socket_path(note.home, note.user)

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        nonce = os.urandom(8).hex()
        kept = sink if isinstance(sink, Kept) else Kept(f"a command on host {self.ref.name}")
        seal = Seal(nonce, sink or kept)
        sealed = ["sh", "-c", SEALED, nonce, *argv]

        try:
            done = spawn.run(
                self.argv(sealed),
                input=input,
                timeout=timeout,
                sink=seal,
                until=lambda: self._complete(seal, timeout),
                instead=lambda fds: self.session(sealed, fds, timeout),
            )
        except (TimedOut, TooMuch, KeyboardInterrupt) as error:
            if seal.begun:
                self._end(nonce)
            elif isinstance(error, TimedOut):  # the command never began
                late = f"host {self.ref.name} did not answer within {timeout:g} s"
                raise Unreachable(late) from None
            raise
        if seal.broken:
            raise self._lost(seal.complaint(kept.stderr, done.code), done.code)
        self.greets = self.greets or bool(seal.greeting)
        code = next(iter(seal.codes.values()))
        return Completed(code=code, stdout=kept.stdout, stderr=kept.stderr)

    def _complete(self, seal: Seal, timeout: float) -> bool:
        """Return whether a command has ended; after a long silence, ask whether the host lives."""
        # A command may take long, but must begin soon.
        long = QUIET * self.patience
        limit = long if seal.begun or timeout <= long else self.patience
        if time.monotonic() - seal.heard > limit:
            self.attend()
            seal.heard = time.monotonic()
        return seal.complete()

    def session(self, argv: Sequence[str], fds: Sequence[int], timeout: float) -> Running | None:
        """Run a command over a connection that is open, if there is one, and not by `argv`."""
        return None

    def attend(self) -> None:
        """Raise unless the host answers.

        Engines do not report that they stopped answering, and a transfer may take hours, so long
        silence is checked.
        """
        try:
            self.run(["true"], timeout=self.patience)
        except TimedOut:
            raise Unreachable(f"host {self.ref.name} no longer answers") from None

    def _end(self, nonce: str) -> None:
        """End a remote command whose client was ended: neither engines nor sshd do."""
        try:
            spawn.run(self.argv(["sh", "-c", END]), input=nonce.encode(), timeout=5)
        except MngrError:
            pass  # it cannot be reached, which is why the deadline passed

    def _lost(self, stderr: bytes, code: int) -> Unreachable:
        """Return the error for a call whose end was not seen."""
        lost = "the connection was lost"
        told = Completed(code=code, stdout=b"", stderr=stderr).complaint if stderr.strip() else lost
        kind = Unreachable if code or stderr.strip() else Unheard
        return kind(f"host {self.ref.name} did not answer: {told}")

    def _read_once(
        self, ids: Sequence[str] | None, after: Sequence[str] = (), patience: float = 0.0
    ) -> tuple[HostReading, dict[str, int]]:
        try:
            return super()._read_once(ids, after, patience)
        except Unheard:
            if after:  # it may have run, and must not run twice
                raise
            return super()._read_once(ids)

    def _script(
        self, script: str, *words: str, input: bytes | None = None, timeout: float = 60.0
    ) -> bytes:
        try:
            return super()._script(script, *words, input=input, timeout=timeout)
        except TimedOut:
            late = f"host {self.ref.name} did not answer within {timeout:g} s"
            raise Unreachable(late) from None
