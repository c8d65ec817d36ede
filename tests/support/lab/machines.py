"""Hosts for tests: network and process namespaces, each with a root file system and sshd.

A lab has one network namespace for the controller, in which the tests' commands run, and one per
host. No packet leaves them.
"""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.support.cli import until

T = TypeVar("T")
HERE = Path(__file__).parent
CLONE_NEWNET = 0x40000000


def why_not() -> str:
    """Return why this machine cannot run such hosts, or an empty text."""
    if sys.platform != "linux":
        return "test hosts need Linux namespaces"
    if os.geteuid() != 0:
        return "test hosts need root, for namespaces and mounts"
    missing = [
        each
        for each in ("ip", "iptables", "nsenter", "setpriv", "ssh", "unshare")
        if not shutil.which(each)
    ]
    return f"test hosts need {', '.join(missing)}" if missing else ""


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base, "mngr-lab")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def root() -> Path:
    """Return the unpacked root below the files of all hosts; built once, then cached."""
    script = (HERE / "root.sh").read_bytes()
    name = f"root-{hashlib.sha256(script).hexdigest()[:12]}"
    folder, packed = cache() / name, cache() / f"{name}.tar.zst"
    with open(cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_interrupted()
        if not packed.exists():
            # If this process is killed, the build goes on and keeps the lock.
            build = [str(HERE / "root.sh"), str(packed)]
            subprocess.run(build, check=True, timeout=1500, pass_fds=(lock.fileno(),))
        if not folder.exists():
            fresh = folder.with_suffix(".new")
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir()
            words = ["tar", "--use-compress-program=zstd", "-xpf", str(packed), "-C", str(fresh)]
            subprocess.run(words, check=True, timeout=300)
            fresh.rename(folder)
    return folder


def _remove_interrupted() -> None:
    """Remove what killed builds left; no other build runs while this process has the lock."""
    for stale in cache().glob(".root.*"):
        # debootstrap mounts it and, if it is killed, leaves it mounted.
        subprocess.run(["umount", "-l", str(stale / "root/proc")], capture_output=True, check=False)
        shutil.rmtree(stale)


@dataclass
class Machine:
    """One host."""

    name: str
    address: str
    user: str
    namespace: str
    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def home(self) -> str:
        return f"/srv/{self.user}"

    def cut(self) -> None:
        """Drop every packet to it, without an error."""
        self._filter("-A", "-j", "DROP")

    def refuse(self) -> None:
        """Reset every connection and accept none, as after a power failure."""
        self._filter("-A", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")

    def only_from(self, address: str) -> None:
        """Make it unreachable for all others, until it is healed."""
        self._filter("-A", "!", "-s", address, "-j", "DROP")

    def forget(self) -> None:
        """Forget all connections, which clients notice with their next packet."""
        for line in self.inside("cat", "/proc/net/tcp").splitlines()[1:]:
            local, remote, state = line.split()[1:4]
            if local.endswith(":0016") and state == "01":
                port = str(int(remote.partition(":")[2], 16))
                tail = ("-j", "REJECT", "--reject-with", "tcp-reset")
                self._filter("-A", "-p", "tcp", "--sport", port, *tail)

    def heal(self) -> None:
        """Undo all of these; may be repeated."""
        self._filter("-F")

    def _filter(self, change: str, *rule: str) -> None:
        inside = ["nsenter", f"--net=/run/netns/{self.namespace}"]
        subprocess.run([*inside, "iptables", "-w", change, "INPUT", *rule], check=True, timeout=20)

    def inside(self, *argv: str, user: str = "root") -> str:
        """Run a command there without ssh."""
        words = ["nsenter", "-a", "-t", str(self.init), "chroot", "--userspec", user, "/", *argv]
        done = subprocess.run(words, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, f"{argv}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def copy(self, source: str, target: str) -> None:
        """Copy a program of this machine into its root."""
        words = ["nsenter", "-a", "-t", str(self.init), "sh", "-c", 'cat > "$0"; chmod 755 "$0"']
        with open(source, "rb") as file:
            subprocess.run([*words, target], stdin=file, check=True, timeout=120)

    @property
    def gateway(self) -> str:
        """Return the controller's address, as this host sees it."""
        return f"{self.address.rpartition('.')[0]}.1"

    def host_key(self) -> str:
        return self.inside("cat", "/etc/ssh/ssh_host_ed25519_key.pub").rpartition(" ")[0]

    def _at_each_visit(self, line: str) -> None:
        """Let sshd run this before each command, until the host is reset."""
        self.inside("sh", "-c", f"echo '{line}' > {self.home}/.ssh/rc", user=self.user)

    def answer_after(self, seconds: int) -> None:
        self._at_each_visit(f"sleep {seconds}")

    def count_visits(self) -> None:
        self._at_each_visit(f"echo >> {self.home}/visits")
        self.inside("touch", f"{self.home}/visits", user=self.user)

    @property
    def visits(self) -> int:
        return int(self.inside("wc", "-l", f"{self.home}/visits").split()[0])

    def reset(self) -> None:
        """Restore its first state for the next test: no process and no file of its user."""
        self.heal()
        # As that user and in the host's own namespace, so that no other process is ended.
        own = f"{self.home}/.mngr {self.home}/visits {self.home}/.ssh/rc"
        script = f"kill -KILL -1; rm -rf {own} /tmp/mngr-*"
        self.inside("sh", "-c", script, user=self.user)

    @property
    def init(self) -> int:
        """Return the host's first process, in this machine's count."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return int(Path(path).read_text().split()[0])

    def kill(self) -> None:
        """Kill every process, as a power failure would."""
        self.process.kill()
        self.process.wait()


@dataclass
class Lab:
    """The network of a controller, and the hosts that it can reach."""

    folder: Path
    machines: list[Machine] = field(default_factory=list)

    @property
    def controller(self) -> str:
        """Return the namespace, named after this process, so that a killed one's is recognised."""
        return f"mngrlab{os.getpid()}"

    def entering(self) -> list[str]:
        """Return the first words of a command that runs on the controller."""
        return ["nsenter", f"--net=/run/netns/{self.controller}", "--"]

    def here(self, make: Callable[[], T]) -> T:
        """Enter the controller's network: a socket belongs to the network it was created in."""

        def entered() -> T:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.controller}") as file:
                assert libc.setns(file.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            return make()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(entered).result()

    def start(self, count: int) -> list[Machine]:
        made = [self._machine(len(self.machines) + 1 + each) for each in range(count)]
        self.machines += made
        for each in made:
            until(lambda each=each: self._answers(each), timeout=90, what=f"sshd of {each.name}")  # type: ignore[misc]
        return made

    def _machine(self, index: int) -> Machine:
        namespace = f"{self.controller}-{index}"
        self._wire(namespace, index)
        name, user = f"box{index}", f"dev{index}"
        folder = self.folder / name
        folder.mkdir(parents=True)
        words = [
            *("setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/run/netns/{namespace}"),
            *("unshare", "-m", "-p", "-u", "-i", "--fork", "--kill-child", "--"),
            *(str(HERE / "host.sh"), str(root()), str(folder), name, user, self.key),
        ]
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return Machine(name, _address(index), user, namespace, process, folder)

    def _wire(self, namespace: str, index: int) -> None:
        """Connect the controller and the host by addresses that no other lab sees."""
        _ip("netns", "add", namespace)
        link = ("link", "add", f"veth{index}", "netns", self.controller, "type", "veth")
        _ip(*link, "peer", "name", "eth0", "netns", namespace)
        _ip("-n", self.controller, "addr", "add", f"10.98.{index}.1/24", "dev", f"veth{index}")
        _ip("-n", self.controller, "link", "set", f"veth{index}", "up")
        for each in (
            ("addr", "add", f"{_address(index)}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-n", namespace, *each)

    @property
    def key(self) -> str:
        return (self.folder / "id_ed25519.pub").read_text().strip()

    def _answers(self, machine: Machine) -> bool:
        words = [*self.entering(), "ssh-keyscan", "-T", "5", "-t", "ed25519", machine.address]
        return bool(subprocess.run(words, capture_output=True, timeout=60, check=False).stdout)

    def config(self) -> str:
        """Return the lines for the controller's ~/.ssh/config."""
        return "".join(
            f"Host {each.name}\n  HostName {each.address}\n  User {each.user}\n"
            f"  IdentityFile {self.folder / 'id_ed25519'}\n  IdentitiesOnly yes\n"
            for each in self.machines
        )

    def known_hosts(self) -> str:
        return "".join(f"{each.address} {each.host_key()}\n" for each in self.machines)

    def close(self) -> None:
        for each in self.machines:
            each.kill()
            _ip("netns", "del", each.namespace)
        _ip("netns", "del", self.controller)


@contextmanager
def lab(folder: Path) -> Iterator[Lab]:
    """Yield a lab; there is one per test process."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "id_ed25519")]
    subprocess.run(key, check=True)
    _sweep()
    made = Lab(folder)
    _ip("netns", "add", made.controller)
    _ip("-n", made.controller, "link", "set", "lo", "up")
    try:
        yield made
    finally:
        made.close()


def _sweep() -> None:
    """Remove the namespaces of killed test processes, whose hosts ended with them."""
    for each in Path("/run/netns").glob("mngrlab*") if Path("/run/netns").exists() else ():
        owner = each.name.removeprefix("mngrlab").partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            subprocess.run(["ip", "netns", "del", each.name], capture_output=True, check=False)


def _address(index: int) -> str:
    return f"10.98.{index}.2"


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, f"ip {words}: {done.stderr.decode()}"
