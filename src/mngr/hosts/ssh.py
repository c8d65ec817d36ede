"""Hosts by ssh, which resolves their names: users, ports, keys and jump hosts."""

from __future__ import annotations

import os
import time

from mngr import files
from mngr.errors import MngrError, NotFound, Refused, Unreachable
from mngr.hosts import ledger, sessions, spawn
from mngr.hosts.base import Capabilities, HostRef
from mngr.hosts.ledger import HostNote
from mngr.hosts.remote import RemoteHost
from mngr.locks import Lock
from mngr.model.quoting import join, portable

try:  # hashlib loads OpenSSL, which takes as long as a third of Python
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # Python 3.11
    except ImportError:
        from hashlib import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.hosts.base import Host
    from mngr.hosts.spawn import Running, Sink
    from mngr.model.completed import Completed
    from mngr.settings.layers import Config

# One connection per host, kept for some minutes: a call over it takes 11 ms instead of 250. A dead
# connection is detected after 15 s; without keepalive, ssh would wait for minutes.
OPTIONS = (
    *("-o", "BatchMode=yes", "-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
    *("-o", "ControlMaster=auto", "-o", "ControlPersist=300"),
    *("-o", "StrictHostKeyChecking=yes", "-o", "LogLevel=ERROR"),
    *("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "ClearAllForwardings=yes"),
    *("-o", "RemoteCommand=none"),
)

TRIES = 8
SILENCE = 5.0
"""Seconds for which the same process does not retry a connection that timed out, and after which it
does not retry one that was closed early: a jump host may be down."""

HELLO = 'printf "%s\\n%s\\n%s\\n" "${MNGR_HOST_DIR:-$HOME/.mngr}" "$(id -u)" "${SHELL##*/}"'
POSIX = frozenset("sh ash bash dash ksh mksh zsh".split())


class UnknownKey(Unreachable):
    """The key of this host has not been confirmed yet."""


class Crowded(Unreachable):
    """sshd closed the connection early, by default when ten connections are waiting."""


class SshProvider:
    """Hosts named in the settings, and hosts that were used before."""

    name = "ssh"

    def __init__(self, config: Config) -> None:
        self._home = config.home
        self._config = str(config.get("providers.ssh.config") or "")
        listed = config.get("providers.ssh.hosts")
        self._listed = [str(each) for each in listed] if isinstance(listed, list) else []

    def hosts(self) -> list[Host]:
        used = [note.name for note in ledger.known(self._home, self.name)]
        return [self._host(name) for name in dict.fromkeys([*self._listed, *used])]

    def find(self, name: str) -> Host:
        """Return a host that ssh can resolve, even if it was never used here."""
        if name not in self._listed and not resolves(name, self._config):
            raise NotFound(f"no host {name!r}", "add it to ~/.ssh/config or to providers.ssh.hosts")
        return self._host(name)

    def _host(self, name: str) -> SshHost:
        return SshHost(name, self._home, self._config)


class SshHost(RemoteHost):
    """One machine; the path of its home is recorded on first contact."""

    capabilities = Capabilities()

    def __init__(self, name: str, controller_home: str, config: str = "") -> None:
        identity = sha256(f"ssh {name}".encode()).hexdigest()[:32]
        self.ref = HostRef(id=f"host-{identity}", name=name, provider="ssh")
        self._controller = controller_home
        self._config = ["-F", config] if config else []
        self._note: HostNote | None = None
        self._silent_until = 0.0
        self._silence = ""

    @property
    def known_hosts(self) -> str:
        """Return the file of keys trusted by mngr; keys trusted by ssh itself are accepted too."""
        return os.path.join(self._controller, "known_hosts")

    def argv(self, argv: Sequence[str], *, tty: bool = False) -> list[str]:
        keys = (self.known_hosts, os.path.expanduser("~/.ssh/known_hosts"))
        known = " ".join(f'"{each.replace("%", "%%")}"' for each in keys)
        place = [
            *("-o", f"UserKnownHostsFile={known}"),
            *("-o", f"ControlPath={self._control_path()}"),
            "-tt" if tty else "-T",
        ]
        return ["ssh", *self._config, *OPTIONS, *place, "--", self.ref.name, self._line(argv)]

    def _line(self, argv: Sequence[str]) -> str:
        """Return the line for the login shell, which is not known before the first contact."""
        known = self._note is not None and self._note.shell in POSIX
        return join(argv) if known else portable(argv)

    def _control_path(self) -> str:
        """Return the socket of the shared connection.

        Another name or another configuration is another connection; an included file is not
        considered, so a change in it counts once the connection has been idle for five minutes.
        """
        read = [*self._config[1:]] or ["/etc/ssh/ssh_config", os.path.expanduser("~/.ssh/config")]
        stamp = [self.ref.name, *(f"{each} {_changed(each)}" for each in read)]
        mark = sha256("\n".join(stamp).encode()).hexdigest()[:16]
        return f"{control_folder(self._controller)}/{mark}"

    def session(self, argv: Sequence[str], fds: Sequence[int], timeout: float) -> Running | None:
        return sessions.opened(self._control_path(), self._line(argv), fds, timeout)

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,
        timeout: float,
        sink: Sink | None = None,
    ) -> Completed:
        """Run a command; retry if sshd was overloaded, since then nothing has started."""
        if time.monotonic() < self._silent_until:
            raise Unreachable(self._silence, f"test it with `ssh {self.ref.name}`")
        began = time.monotonic()
        for number in range(1, TRIES):
            try:
                return super().run(argv, input=input, timeout=timeout, sink=sink)
            except Crowded:
                if time.monotonic() - began > SILENCE:
                    raise
                time.sleep(number * 0.1 + os.urandom(1)[0] / 500)
        return super().run(argv, input=input, timeout=timeout, sink=sink)

    def offered(self) -> str:
        """Return the host's current key as a line for known_hosts, without logging in."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="mngr-") as folder:
            path = os.path.join(folder, "known_hosts")
            options = [
                *("-o", f"UserKnownHostsFile={path}", "-o", "GlobalKnownHostsFile=/dev/null"),
                *("-o", "StrictHostKeyChecking=accept-new", "-o", "ControlPath=none"),
                *("-o", "PreferredAuthentications=none", "-o", "HashKnownHosts=no"),
            ]
            words = ["ssh", *self._config, *options, *OPTIONS, "-T", "--", self.ref.name, "true"]
            done = spawn.run(words, timeout=self.patience + 10)
            try:
                with open(path, encoding="utf-8") as file:
                    return file.read()
            except FileNotFoundError:
                raise self._lost(done.stderr, done.code) from None

    def meet(self, ask: Callable[[str], bool] | None) -> None:
        """On first contact, ask the user whether to trust the host's key."""
        if self._note or ledger.read(self._controller, "ssh", self.ref.name):
            return
        try:
            self.greeted()
        except UnknownKey:
            if ask is None:
                raise
            line = self.offered()
            if not ask(f"{fingerprints(self.ref.name, line)} Trust it?"):
                raise Refused(f"the key of host {self.ref.name} is not trusted") from None
            self.trusts(line)
            self.greeted()

    def distrusts(self, line: str) -> bool:
        """Return whether another key of the same host is pinned."""
        name = line.split(" ", 1)[0]
        pinned = {each for each in _lines(self.known_hosts) if each.split(" ", 1)[0] == name}
        return bool(pinned) and line not in pinned

    def trusts(self, line: str) -> None:
        """Pin that key, and remove the keys pinned for the same host before."""
        name = line.split(" ", 1)[0]
        os.makedirs(self._controller, mode=0o700, exist_ok=True)
        with Lock(self._controller, "known_hosts", ""):
            kept = [each for each in _lines(self.known_hosts) if each.split(" ", 1)[0] != name]
            files.replace(self.known_hosts, "".join([*kept, line]).encode())

    def _lost(self, stderr: bytes, code: int) -> Unreachable:
        name, told = self.ref.name, stderr.decode("utf-8", "replace")
        if "IDENTIFICATION HAS CHANGED" in told:
            return Unreachable(
                f"host {name} shows a different key than the trusted one: it was reinstalled, or "
                "another machine answers for it",
                f"if it was reinstalled, run `mngr host trust {name} --replace`",
            )
        if "Host key verification failed" in told:
            hint = f"trust it with `mngr host trust {name}`"
            return UnknownKey(f"the key of host {name} is not known yet", hint)
        if "kex_exchange_identification" in told:
            told = f"host {name}, or its jump host, closed the connection before the login"
            return Crowded(told, f"test it with `ssh {name}`")
        if "Permission denied" in told:
            refused = told.strip().splitlines()[-1].strip()
            return Unreachable(
                f"host {name} refused the login: {refused}", f"test it with `ssh {name}`"
            )
        lost = super()._lost(stderr, code)
        lost.hint = f"test it with `ssh {name}`"
        if told.startswith("ssh: connect to host") and "timed out" in told:
            self._silence, self._silent_until = lost.message, time.monotonic() + SILENCE
        return lost

    def greeted(self) -> HostNote:
        if self._note is None:
            self._note = ledger.read(self._controller, "ssh", self.ref.name) or self._greet()
        return self._note

    def _greet(self) -> HostNote:
        lines = (
            self.run(["sh", "-c", HELLO], timeout=self.patience + 10).stdout.decode().splitlines()
        )
        if len(lines) != 3 or not lines[1].isdigit():
            raise Unreachable(f"host {self.ref.name} gave an incomplete answer")
        home, user, shell = lines
        note = HostNote(
            name=self.ref.name, provider="ssh", time=time.time(), home=home, user=int(user),
            shell=shell,
        )  # fmt: skip
        ledger.write(self._controller, note)
        return note


def control_folder(controller_home: str, *, make: bool = True) -> str:
    """Return a private folder with a short path: a socket's path is limited to about 104 bytes."""
    mark = sha256(os.fsencode(controller_home)).hexdigest()[:8]
    folder = f"/tmp/mngr-{os.getuid()}/ssh-{mark}"
    # /tmp is shared: the owner of either could pose as the host. makedirs would ignore the mode.
    for each in (os.path.dirname(folder), folder) if make else ():
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            if os.lstat(each).st_uid != os.getuid():
                raise MngrError(f"{each} belongs to another user") from None
    return folder


def fingerprints(name: str, line: str) -> str:
    """Return the fingerprints for the user to compare."""
    done = spawn.run(["ssh-keygen", "-l", "-f", "-"], input=line.encode(), timeout=10)
    told = [each.split() for each in done.stdout.decode("utf-8", "replace").splitlines()]
    keys = ", ".join(f"{words[1]} {words[-1]}" for words in told if len(words) > 2)
    if not keys:
        raise MngrError(f"the key of host {name} cannot be read: {done.complaint}")
    return f"Host {name} shows the key {keys}."


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return [each if each.endswith("\n") else f"{each}\n" for each in file]
    except FileNotFoundError:
        return []


def resolves(name: str, config: str) -> bool:
    """Return whether ssh's configuration or the network knows this name."""
    words = ["ssh", *(["-F", config] if config else []), "-G", name]
    done = spawn.run(words, timeout=10)
    if done.code:
        first = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise MngrError(f"ssh cannot read its configuration: {first}")
    told = done.stdout.decode("utf-8", "replace").splitlines()
    target = dict(line.split(" ", 1) for line in told if " " in line)
    reached = {"proxyjump", "proxycommand"} & target.keys()
    said = target.get("hostname", name) != name or reached or "." in name
    return bool(said) or _on_the_network(name)


def _on_the_network(name: str) -> bool:
    import socket

    try:
        return bool(socket.getaddrinfo(name, None))
    except OSError:
        return False
