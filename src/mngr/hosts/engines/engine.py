"""Hosts that an engine creates on request: containers, allocations, pods.

A subclass of Engine knows the program and its arguments. This module has the common parts: the note
on disk before a host is created, the tag of the host, and the state of each host.
"""

from __future__ import annotations

import os
import time

from mngr.errors import MissingProgram, MngrError, NotFound, Unreachable, UsageError
from mngr.hosts import ledger, spawn, tmux
from mngr.hosts.base import Capabilities, HostReading, HostRef, HostRequest, Lease
from mngr.hosts.engines import asking
from mngr.hosts.ledger import HostNote
from mngr.hosts.remote import RemoteHost
from mngr.hosts.spawn import Sink
from mngr.model.address import check_name
from mngr.model.completed import Completed
from mngr.settings.layers import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Argument: the home on the host, or "". Print the home, the user's id and the missing programs.
HELLO = r"""
home=${1:-${MNGR_HOST_DIR:-$HOME/.mngr}}
case $home in "~/"*) home=$HOME/${home#"~/"} ;; esac
printf '%s\n%s\n' "$home" "$(id -u)"
for each in git tar tmux; do command -v "$each" > /dev/null || printf '%s ' "$each"; done
"""
# Argument: the socket of the tmux server that the host's first process starts.
SERVED = r"""
tries=0
until [ -S "$1" ]; do
  tries=$((tries + 1)); [ "$tries" -lt 300 ] || { echo "no tmux server started" >&2; exit 1; }
  sleep 0.1
done
"""
LOOK = 10.0
"""Seconds that an engine may take to list its hosts."""
ENDED = (129, 137, 143)
"""Exit codes of a command that HUP, KILL or TERM ended."""
GONE = "it is gone from"
TAG = "mngr-host"
KEYS = ("", "-name", "-controller", "-ends")
"""Suffixes of TAG in the names of the tags of every host."""


class NotMade(MngrError):
    """The engine refused to create a host, so there is nothing to end."""


class Stopped(Unreachable):
    """The host is not running, according to its engine."""

    def __init__(self, name: str, why: str, hint: str) -> None:
        super().__init__(f"host {name} is stopped: {why}", hint)
        self.why = why


class EngineHost(RemoteHost):
    """One host of an engine."""

    def __init__(self, engine: Engine, note: HostNote) -> None:
        self._engine, self._note = engine, note
        self.capabilities = engine.capabilities
        self.ref = HostRef(id=note.id, name=note.name, provider=engine.name, tags={**note.tags})

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        return self._engine.argv(self._note.handle, argv, tty=tty)

    def greeted(self) -> HostNote:
        """Return the note, completed with the host's data on first contact."""
        if not self._note.home:
            wanted = self._engine.home(self._note)
            done = self.run(["sh", "-c", HELLO, "mngr", wanted], timeout=60)
            lines = os.fsdecode(done.stdout).split("\n")
            if len(lines) != 3 or not lines[1].isdigit():
                raise Unreachable(f"host {self.ref.name} gave an incomplete answer")
            if missing := ", ".join(lines[2].split()):
                told = f"{missing} is not installed on host {self.ref.name}"
                raise MissingProgram(told, "install it there")
            self._introduce(self._note.replace(home=lines[0], user=int(lines[1])))
        return self._note

    def _introduce(self, note: HostNote) -> None:
        """Send the path of mngr's tmux socket to the host's first process; see holding.HOLD."""
        self._note = note
        conf = tmux.conf(note.home, 200, 50, 10_000)
        files = {"tmux.conf": conf, "tmux.socket": f"{self.socket}\n".encode()}
        self.put({f"{note.home}/{name}": (text, 0o600) for name, text in files.items()})
        if self._engine.serves:
            self._script(SERVED, self.socket)
        ledger.rewrite(self._engine.controller, note)

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        """Run a command; a host that is ending may kill the command before itself."""
        done = super().run(argv, input=input, timeout=timeout, sink=sink)
        if done.code in ENDED and (why := self._engine.why_stopped(self._note)):
            raise Unreachable(f"host {self.ref.name} ended while the command ran: {why}")
        return done

    def _lost(self, stderr: bytes, code: int) -> Unreachable:
        why = self._engine.why_stopped(self._note)
        return self._stopped(why) if why else super()._lost(stderr, code)

    def _stopped(self, why: str) -> Stopped:
        restarts = self.capabilities.restarts and not why.startswith(GONE)
        start = f"start it with `mngr host start {self.ref.name}`"
        remove = f"remove it with `mngr host destroy {self.ref.name}`"
        return Stopped(self.ref.name, why, start if restarts else remove)

    def read(
        self, ids: Sequence[str] | None = None, after: Sequence[str] = (), patience: float = 0.0
    ) -> HostReading:
        """Read the host; if it is not running, its agents are stopped, which is not an error."""
        try:
            return super().read(ids, after, patience)
        except Unreachable as error:
            why = error.why if isinstance(error, Stopped) else self._engine.why_stopped(self._note)
            if not why:
                raise
            stopped = self._stopped(why)
        if not self.capabilities.restarts:
            ledger.ended(self._engine.controller, self._note.id, why)
        if after:
            raise stopped
        return HostReading(error=stopped.message, hint=stopped.hint, stopped=True)


class Engine:
    """A provider whose hosts are created and ended by a program; subclasses override methods."""

    name: str
    program: str
    capabilities = Capabilities(new_hosts=True)
    check: tuple[str, ...] = ("version",)
    """Arguments of the program that check whether its engine answers."""
    build_keys: tuple[str, ...] = ()
    """The keys that `-b KEY=VALUE` accepts."""
    serves = False
    """Whether the host's first process starts the tmux server; see holding.HOLD."""

    def __init__(self, config: Config) -> None:
        self.controller = config.home
        self.prefix = str(config.get("prefix"))
        self._settings = config.table(f"providers.{self.name}")

    def entering(self, handle: str, *, tty: bool) -> list[str]:
        """Return the first words of a command for that host."""
        raise AssertionError("every Engine defines entering")

    def prepare(self, request: HostRequest) -> HostRequest:
        """Do slow work that creates no host, such as building an image; return the new request."""
        return request

    def make(self, note: HostNote, request: HostRequest) -> str:
        """Create the host, tagged with the note's id; return its handle."""
        raise AssertionError("every Engine defines make")

    def remove(self, handle: str) -> None:
        """End the host; not an error if it no longer exists."""
        raise AssertionError("every Engine defines remove")

    def start(self, handle: str) -> None:
        raise UsageError(f"hosts of {self.name} cannot be started")

    def stop(self, handle: str) -> None:
        raise UsageError(f"hosts of {self.name} cannot be stopped")

    def snapshot(self, handle: str, name: str) -> str:
        raise UsageError(f"hosts of {self.name} cannot be saved as images")

    def leases(self) -> list[Lease]:
        """Return everything with mngr's tag; raise if the engine does not answer."""
        raise AssertionError("every Engine defines leases")

    def rate(self, build: Mapping[str, str]) -> float | None:
        """Return the dollars per second of a host with these arguments; None if unknown."""
        return None

    def cost(self, note: HostNote) -> float | None:
        """Return the cost so far in dollars."""
        rate = self.rate(note.build)
        return None if rate is None else rate * (time.time() - note.time)

    def home(self, note: HostNote) -> str:
        """Return $MNGR_HOST_DIR on the host, if not the default."""
        return ""

    # common to all engines

    def argv(self, handle: str, argv: Sequence[str], *, tty: bool) -> list[str]:
        return [*self.entering(handle, tty=tty), *argv]

    def why_not(self) -> str:
        """Return why this engine cannot be used here, in one line; "" if it can."""
        try:
            done = self.ask(*self.check, timeout=10)
        except MngrError as error:
            return error.message
        return self.complaint(done) if done.code else ""

    def hosts(self) -> list[EngineHost]:
        return [self.host(note) for note in ledger.known(self.controller, self.name) if note.handle]

    def host(self, note: HostNote) -> EngineHost:
        return EngineHost(self, note)

    def create(
        self, request: HostRequest, step: Callable[[str], None] = lambda name: None
    ) -> EngineHost:
        """Write the note, then create the host: if mngr is killed, `host audit` finds the host."""
        self.check_request(request)
        if why := self.why_not():  # before the note is written, since nothing is created
            told = why if why.startswith(f"{self.name}:") else f"{self.name}: {why}"
            raise MngrError(told, "see `mngr provider list`")
        note = HostNote(
            id=f"host-{os.urandom(16).hex()}", name=request.name, provider=self.name, made=True,
            time=time.time(), lifetime=request.lifetime, idle=request.idle, build=request.build,
            tags=request.tags,
        )  # fmt: skip
        ledger.write(self.controller, note, new=True)
        step("host_noted")
        try:
            request = self.prepare(request)
            with asking.Asking(self.controller, note.id):
                note = note.replace(handle=self.make(note, request))
                step("host_made")
                ledger.write(self.controller, note)
            step("host_kept")
            host = self.host(note)
            host.greeted()
            step("host_greeted")
        except NotMade:
            ledger.forget(self.controller, self.name, note.name)
            raise
        except (MngrError, OSError, KeyboardInterrupt) as error:
            self._undo(note, error)
            raise
        return host

    def _undo(self, note: HostNote, error: BaseException) -> None:
        """End a host that could not be created; on failure keep its note and the original error."""
        if isinstance(error, Stopped):
            error.hint = ""  # it could only be started if it were kept
        try:
            self.end(note)
        except MngrError:
            if isinstance(error, MngrError):
                error.hint = f"when {self.name} answers again, run `mngr host audit --end`"

    def check_request(self, request: HostRequest) -> None:
        check_name(request.name, "a host")
        if unknown := [key for key in request.build if key not in self.build_keys]:
            hint = f"{self.name} takes {', '.join(self.build_keys) or 'none'}"
            raise UsageError(f"-b {unknown[0]}: unknown build argument", hint)
        if reserved := [key for key in request.tags if key.startswith(TAG)]:
            raise UsageError(f"--host-label {reserved[0]}: mngr uses tags of this name itself")

    def end(self, note: HostNote) -> None:
        """Remove the host, even if its handle was never received, then its note.

        Raise while the engine may still create the host: without the note it would not be found.
        """
        handle = note.handle or self.sought(note)
        why = asking.pending(self.controller, note.id, listed=bool(handle))
        if why and not note.handle:
            raise MngrError(f"host {note.name} of {self.name} is {why}", "try again later")
        if handle:
            self.remove(handle)
        ledger.forget(self.controller, self.name, note.name)

    def sought(self, note: HostNote) -> str:
        """Return the handle of a host whose creation was interrupted, found by its tag."""
        lease = self.lease(note)
        return lease.handle if lease else ""

    def destroy(self, name: str) -> None:
        self.end(self.note(name))

    def note(self, name: str) -> HostNote:
        note = ledger.read(self.controller, self.name, name)
        if note is None:
            raise NotFound(f"no host {name!r} of {self.name}", "see `mngr host list`")
        return note

    def lease(self, note: HostNote) -> Lease | None:
        return next((each for each in self.leases() if each.host_id == note.id), None)

    def why_stopped(self, note: HostNote) -> str:
        """Return why a host is not running; "" if it is, or if the engine does not answer."""
        try:
            lease = self.lease(note)
        except MngrError:
            return ""
        if lease is None:
            return ledger.ended(self.controller, note.id) or f"{GONE} {self.name}"
        if lease.running and not lease.ending:
            return ""
        return lease.reason or "not running"

    def tags(self, note: HostNote) -> dict[str, str]:
        ends = str(round(note.time + note.lifetime)) if note.lifetime else "0"
        values = (note.id, note.name, ledger.controller(self.controller), ends)
        return {f"{TAG}{key}": value for key, value in zip(KEYS, values, strict=True)}

    def setting(self, key: str, default: str = "") -> str:
        return str(self._settings.get(key) or default)

    def patience(self, usual: float) -> float:
        """Return the seconds that a host may take to start."""
        try:
            return float(self.setting("patience") or usual)
        except ValueError:
            wrong = f"providers.{self.name}.patience must be a number of seconds"
            raise UsageError(wrong) from None

    def ask(self, *words: str, input: bytes | None = None, timeout: float = 60) -> Completed:
        return spawn.run([self.program, *words], input=input, timeout=timeout)

    def tell(self, *words: str, input: bytes | None = None, timeout: float = 60) -> str:
        """Return the engine's answer, or raise with its error."""
        return self.told(self.ask(*words, input=input, timeout=timeout))

    def told(self, done: Completed) -> str:
        if done.code:
            raise MngrError(f"{self.name}: {self.complaint(done)}")
        return os.fsdecode(done.stdout).strip()

    def complaint(self, done: Completed) -> str:
        """Return why the engine failed, in one line."""
        return done.complaint


def lease(handle: str, values: Sequence[str], running: bool, reason: str) -> Lease:
    """Return a lease from an engine's answer and the values of its tags."""
    host_id, name, controller, ends = values
    return Lease(
        handle=handle, host_id=host_id, name=name, controller=controller, running=running,
        reason=reason, ends=float(ends) if running and ends.isdigit() and int(ends) else None,
    )  # fmt: skip
