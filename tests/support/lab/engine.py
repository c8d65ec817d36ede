"""A Docker engine for tests, with its own network, processes and data; one per session.

All workers of a session share it; it ends with the last of them, even if that one was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tests.support.cli import Cli, until
from tests.support.lab.machines import HERE, cache, root

BASE = "mngr-lab:base"
# The user, the paths and the language differ from those of this machine.
DOCKERFILE = """\
FROM mngr-lab:root
RUN useradd -m -d /srv/dev -s /bin/bash dev && mkdir /volume && chown dev /volume
USER dev
WORKDIR /srv/dev
ENV LANG=de_DE.UTF-8
"""


def why_not() -> str:
    """Return why this machine cannot run an engine, or an empty text."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a Docker engine for tests needs Linux and root"
    missing = [each for each in ("docker", "dockerd", "unshare", "flock") if not shutil.which(each)]
    return f"a Docker engine for tests needs {', '.join(missing)}" if missing else ""


@dataclass
class Engine:
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {"DOCKER_HOST": f"unix://{self.folder}/docker.sock"}

    def start(self, users: Path) -> None:
        apart = "unshare -m -n -p -i --fork --kill-child --"
        script = f'({apart} "$0" "$1" "$2"; rm -rf "$1") &'
        words = ["sh", "-c", script, str(HERE / "engine.sh"), str(self.folder), str(users)]
        with open(self.folder / "log", "ab") as log:
            subprocess.run(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                check=True,
            )  # fmt: skip
        self.wait()

    def wait(self) -> None:
        until(lambda: self.docker("info").returncode == 0, 60, "the Docker engine")

    def down(self) -> None:
        """Stop the engine, as for an upgrade: containers continue, and nothing answers."""
        (self.folder / "down").touch()
        until(lambda: self.docker("info").returncode, 60, "the engine's end")

    def up(self) -> None:
        (self.folder / "down").unlink()
        self.wait()

    def freeze(self) -> None:
        """Accept connections without answering."""
        self._signal(signal.SIGSTOP)

    def heal(self) -> None:
        """Undo `down` and `freeze`; may be repeated."""
        self._signal(signal.SIGCONT)
        (self.folder / "down").unlink(missing_ok=True)
        self.wait()

    def _signal(self, number: int) -> None:
        mark = f"dockerd\0--data-root\0{self.folder}/data\0".encode()
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if _content(path).startswith(mark):
                os.kill(int(path.parent.name), number)

    def crash(self) -> None:
        """While the engine is down, end its containers, as a crash of its machine would."""
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if f"{self.folder}/".encode() in _content(path) and b"containerd-shim" in _content(
                path
            ):
                for child in Path("/proc", path.parent.name, "task").glob("*/children"):
                    for pid in _content(child).split():
                        os.kill(int(pid), signal.SIGKILL)

    def remove(self, cli: Cli) -> None:
        """End the containers that a home created, even if a failed test left the engine down."""
        self.heal()
        if left := self.containers(cli):
            self.docker("rm", "-f", *left)

    def docker(self, *words: str, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["docker", *words], env=os.environ | self.env, input=input, capture_output=True,
            timeout=300, check=False,
        )  # fmt: skip

    def containers(self, cli: Cli, *, every: bool = True) -> list[str]:
        """Return the names of the containers that a home created."""
        try:
            mark = (cli.controller_home / "hosts" / "controller").read_text()
        except FileNotFoundError:
            return []
        words = ["ps", *(["-a"] if every else []), "--format", "{{.Names}}"]
        return self.told(*words, "--filter", f"label=mngr-host-controller={mark}").split()

    def told(self, *words: str, input: bytes | None = None) -> str:
        done = self.docker(*words, input=input)
        assert done.returncode == 0, f"docker {words}: {done.stderr.decode()}"
        return done.stdout.decode().strip()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@contextmanager
def engine(session: Path) -> Iterator[Engine]:
    """Yield the engine; `session` is a folder that all workers of a test session share."""
    with open(session / "engine.users", "a+") as users, open(session / "engine.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        noted = session / "engine.folder"
        made = Engine(Path(noted.read_text() if noted.exists() else "/nonexistent"))
        if not made.folder.exists() or made.docker("info").returncode:
            made = Engine(fresh_data())
            made.start(session / "engine.users")
            noted.write_text(str(made.folder))
        fcntl.flock(lock, fcntl.LOCK_UN)
        yield made


def fresh_data() -> Path:
    """Return a folder with an engine's data, which contains the lab's image."""
    return _copy(_template())


def _template() -> Path:
    """Return engine data with the lab's root as an image; importing it takes ten seconds."""
    mark = hashlib.sha256(f"{root().name} {DOCKERFILE}".encode()).hexdigest()[:12]
    folder = cache() / f"docker-{mark}"
    with open(cache() / "docker.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    """Build the image without fetching anything, because there may be no network."""
    fresh = Engine(Path(mkdtemp(prefix="build-", dir=cache())))
    users = fresh.folder / "users"
    with open(users, "a+") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        fresh.start(users)
        packed = cache() / f"{root().name}.tar.zst"
        unpacking = ["zstd", "-dqc", str(packed)]
        with subprocess.Popen(unpacking, stdout=subprocess.PIPE) as unpack:
            done = subprocess.run(
                ["docker", "import", "-", "mngr-lab:root"], stdin=unpack.stdout,
                env=os.environ | fresh.env, capture_output=True, timeout=300, check=False,
            )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        fresh.told("build", "-q", "--network", "none", "-t", BASE, "-", input=DOCKERFILE.encode())
        fresh.down()
        # Only a normal end of the engine leaves its databases intact.
        until(lambda: not (fresh.folder / "docker.sock").exists(), 60, "the engine's end")
        (fresh.folder / "data").rename(folder)
    until(lambda: not fresh.folder.exists(), 60, "the end of the engine's processes")


def _copy(template: Path) -> Path:
    """Copy the data: links for layers, which are never written, and copies of the databases."""
    folder = Path(mkdtemp(prefix="engine-", dir=cache()))
    data = folder / "data"
    data.mkdir(mode=0o710)
    for each in template.iterdir():
        links = ["-l"] if each.name == "overlay2" else []
        subprocess.run(["cp", "-a", *links, str(each), str(data)], check=True)
    return folder
