"""Start the service for a test process, and look into it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mngr.hosts.modal import enter
from tests.support.cli import ROOT, Cli, until
from tests.support.lab import machines

REAL = "MNGR_MODAL_REAL"
"""Set by `make modal-check`: tests use Modal itself."""


def why_not() -> str:
    """Why this machine cannot have the service, or nothing."""
    if REAL in os.environ:
        return ""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "sandboxes for tests need Linux and root"
    missing = [each for each in ("nsenter", "setsid", "unshare") if not shutil.which(each)]
    return f"sandboxes for tests need {', '.join(missing)}" if missing else ""


@dataclass
class Cloud:
    """A running service."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{(self.folder / 'port').read_text()}"

    def env(self, owner: str) -> dict[str, str]:
        return {
            "MODAL_SERVER_URL": self.url,
            "MODAL_TOKEN_ID": owner,
            "MODAL_TOKEN_SECRET": "secret",
            "MODAL_CONFIG_PATH": "/nonexistent",
        }

    def order(self, owner: str, **orders: object) -> None:
        """How to misbehave from now on, to that token."""
        path = self.folder / "orders" / f"{owner}.json"
        path.with_suffix(".new").write_text(json.dumps(orders))
        path.with_suffix(".new").rename(path)

    def requests(self, owner: str) -> list[tuple[float, str]]:
        lines = (self.folder / "requests").read_text().splitlines()
        words = [line.split(" ") for line in lines]
        return [(float(time), method) for time, method, whose in words if whose == owner]

    def sandboxes(self, owner: str) -> list[str]:
        """Those of that token that run."""
        return [box for box, (whose, _) in self._alive().items() if whose == owner]

    def _alive(self) -> dict[str, list[str]]:
        """By id, the token and the first process as the service counts."""
        found: dict[str, list[str]] = {}
        for each in sorted((self.folder / "alive").glob("*")):
            with suppress(FileNotFoundError):
                found[each.name] = each.read_text().split()
        return found

    @property
    def pid(self) -> int:
        """The service itself, below `unshare`."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return int(Path(path).read_text().split()[0])

    def freeze(self) -> None:
        """It answers nobody any more; the sandboxes run on."""
        os.kill(self.pid, signal.SIGSTOP)

    def refuse(self) -> None:
        """Every connection breaks, and none is accepted."""
        (self.folder / "refusing").touch()
        until((self.folder / "refused").exists, what="the end of the connections")

    def heal(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        (self.folder / "refusing").unlink(missing_ok=True)
        until(lambda: not (self.folder / "refused").exists(), what="the service's return")

    def inside(self, box: str, script: str, *, ends: bool = False) -> str:
        """Run something in a sandbox without the service; what ends the sandbox may end with it."""
        init = self._alive()[box][1]
        within = ("nsenter", "-m", "-p", "-t", str(self.pid), "--", "nsenter", "-t", init)
        space = ("-m", "-u", "-i", "-n", "-p", "-r", f"--wd=/proc/{init}/root/root", "--")
        words = [*within, *space, "sh", "-c", script]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root"}
        done = subprocess.run(words, capture_output=True, timeout=60, env=env)
        assert ends or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def end(self, owner: str, *names: str) -> None:
        """As if the machines of these sandboxes had failed; all of that token unless named."""
        names = names or tuple(self.sandboxes(owner))
        for name in names:
            (self.folder / "doomed" / name).touch()
        until(lambda: not {*names} & {*self.sandboxes(owner)}, what="the end of sandboxes")

    def asked(self, name: str) -> dict[str, Any]:
        """What a sandbox or an image was made from."""
        found: dict[str, Any] = json.loads((self.folder / "sandboxes" / f"{name}.json").read_text())
        return found


@contextmanager
def cloud(folder: Path, root: Path | None = None) -> Iterator[Cloud]:
    """In a mount namespace of its own, on a tmpfs: its layers need a file system for overlays.

    Sandboxes have the lab's root unless told otherwise: `/` has all programs of this machine.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = (
        'mount --make-rprivate / && mkdir "$1/state" && '
        'mount -t tmpfs -o size=6g none "$1/state" && mkdir "$1/state/boxes" && '
        'exec "$0" -m tests.support.cloud.service "$1" "$2"'
    )
    words = [
        *("setpriv", "--pdeathsig", "KILL", "unshare", "-m", "-p", "--fork", "--kill-child"),
        *("--mount-proc", "--", "sh", "-c", script, sys.executable, str(folder)),
        str(root or machines.root()),
    ]
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, cwd=ROOT
        )
    try:
        until((folder / "port").exists, 30, "the service's port")
        yield Cloud(folder, process)
    finally:
        process.kill()
        process.wait()


class Real(Cloud):
    """Modal itself, with the login of whoever runs `make modal-check`."""

    def __init__(self) -> None:
        """There is no process of ours."""

    def env(self, owner: str) -> dict[str, str]:
        mine = {key: value for key, value in os.environ.items() if key.startswith("MODAL_")}
        return {"MODAL_CONFIG_PATH": str(Path.home() / ".modal.toml"), **mine}

    def sandboxes(self, owner: str) -> list[str]:
        """Not asked: `host destroy` was told that they ended."""
        return []

    def end(self, owner: str, *names: str) -> None:
        """Nothing of Modal's is broken on purpose."""


def sockets(cli: Cli) -> list[Path]:
    """What a bridge of this world that was killed leaves."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in cli.env.items():
            if key.startswith("MODAL_"):
                patch.setenv(key, value)
        path = enter.place(str(cli.controller_home))
    return [Path(f"{path}{more}") for more in ("", ".new", ".log", ".lock")]


def owner(cli: Cli) -> str:
    return cli.env.get("MODAL_TOKEN_ID", "")
