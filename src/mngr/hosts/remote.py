"""A host behind a wire: each call proves that the command over there came to its end.

Return codes do not tell a dead host from a failed command: srun exits 0 when its node dies, ssh
and `docker exec` exit 255 or 1, as the command itself may. So every call ends with a seal, a
nonce and the command's own code, on both streams. Without it the host is lost. A first mark tells
where the command's own output begins: shells over there may greet whoever comes.
"""

from __future__ import annotations

import os
import time

from mngr.errors import MngrError, TimedOut, Unreachable
from mngr.hosts import spawn, tmux
from mngr.hosts.base import QUIET, Completed
from mngr.hosts.shell import ShellHost

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.ledger import HostNote
    from mngr.hosts.spawn import Sink

SEALED = r"""
printf '\n%s\n' "$0"; printf '\n%s\n' "$0" >&2
"$@"; code=$?
printf '\n%s %s\n' "$0" "$code"; printf '\n%s %s\n' "$0" "$code" >&2
"""

# The nonce comes on stdin: in no command line here, so that this call does not end itself.
END = r"""
read -r nonce
ps -A -o pgid= -o args= | while read -r group args; do
  case $args in *"$nonce"*) kill -s TERM -- "-$group" ;; esac
done
"""

LIMIT = 1 << 16
"""Bytes that are kept of what comes before the command begins."""


class Seal:
    """Passes on what comes between the two marks; holds back what may be the beginning of one."""

    def __init__(self, nonce: str, sink: Sink) -> None:
        self._begin, self._end = f"\n{nonce}\n".encode(), f"\n{nonce} ".encode()
        self._sink = sink
        self.begun: set[int] = set()
        self._held = {1: b"", 2: b""}
        self.codes: dict[int, int] = {}
        self.heard = time.monotonic()

    def __call__(self, stream: int, chunk: bytes) -> None:
        self.heard = time.monotonic()
        if stream in self.codes:
            return  # a process the command left behind still writes
        data = self._held[stream] + chunk
        if stream not in self.begun:
            _, mark, rest = data.partition(self._begin)
            if not mark:
                # The transport's own words, or those of a shell that greets.
                self._held[stream] = data[-LIMIT:]
                return
            self.begun.add(stream)
            data = rest
        self._held[stream] = self._passed(stream, data)

    def _passed(self, stream: int, data: bytes) -> bytes:
        """What has to wait for more."""
        at = data.find(self._end)
        end = data.find(b"\n", at + len(self._end)) if at >= 0 else -1
        if end >= 0:
            self.codes[stream] = int(data[at + len(self._end) : end])
        if at < 0:
            # Only a newline can begin the mark: everything before it is shown at once.
            at = data.rfind(b"\n", max(0, len(data) - len(self._end) + 1))
            at = at if self._end.startswith(data[at:]) else -1
        keep = len(data) - at if at >= 0 else 0
        if ready := data[: len(data) - keep]:
            self._sink(stream, ready)
        return data[len(data) - keep :]

    @property
    def broken(self) -> bool:
        return not self.codes

    def complete(self) -> bool:
        return len(self.codes) == 2

    def rest(self) -> bytes:
        """What came on stderr and was never passed on, once it is known that no seal follows."""
        return self._held[2]


class RemoteHost(ShellHost):
    """Subclasses say how to get there, `argv`, and what the host said of itself, `greeted`."""

    def greeted(self) -> HostNote:
        raise NotImplementedError

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
        kept = {1: bytearray(), 2: bytearray()}
        seal = Seal(nonce, sink or (lambda stream, data: kept[stream].extend(data)))
        there = self.argv(["sh", "-c", SEALED, nonce, *argv])

        def complete() -> bool:
            # A command may take its time, but not to begin.
            long = QUIET * self.patience
            limit = long if seal.begun or timeout <= long else self.patience
            if time.monotonic() - seal.heard > limit:
                self.attend()
                seal.heard = time.monotonic()
            return seal.complete()

        try:
            done = spawn.run(there, input=input, timeout=timeout, sink=seal, until=complete)
        except (TimedOut, KeyboardInterrupt) as error:
            if seal.begun:
                self._end(nonce)
            elif isinstance(error, TimedOut):  # not the command is late, nobody heard of it
                late = f"host {self.ref.name} did not answer within {timeout:g} s"
                raise Unreachable(late) from None
            raise
        if seal.broken:
            raise self._lost(bytes(kept[2]) + seal.rest(), done.code)
        code = next(iter(seal.codes.values()))
        return Completed(code=code, stdout=bytes(kept[1]), stderr=bytes(kept[2]))

    def attend(self) -> None:
        """Raises unless the host answers. Engines do not tell a client that they stopped answering,
        and a transfer may take hours, so silence is looked into."""
        try:
            self.run(["true"], timeout=self.patience)
        except TimedOut:
            raise Unreachable(f"host {self.ref.name} does not answer any more") from None

    def _end(self, nonce: str) -> None:
        """End over there what nobody waits for any more: no engine and no sshd does."""
        try:
            spawn.run(self.argv(["sh", "-c", END]), input=nonce.encode(), timeout=5)
        except MngrError:
            pass  # it cannot be reached, which is why the deadline passed

    def _lost(self, stderr: bytes, code: int) -> Unreachable:
        """What to tell of a call that came to no end over there."""
        told = Completed(code=code, stdout=b"", stderr=stderr).complaint
        return Unreachable(f"host {self.ref.name} did not answer: {told}")

    def _script(
        self, script: str, *words: str, input: bytes | None = None, timeout: float = 60.0
    ) -> bytes:
        try:
            return super()._script(script, *words, input=input, timeout=timeout)
        except TimedOut:
            late = f"host {self.ref.name} did not answer within {timeout:g} s"
            raise Unreachable(late) from None
