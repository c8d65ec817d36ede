"""Start the test service, inspect it, and make it misbehave."""

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
    """Return why this machine cannot run the service, or an empty text."""
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
        """Set how the service misbehaves from now on for that token."""
        path = self.folder / "orders" / f"{owner}.json"
        path.with_suffix(".new").write_text(json.dumps(orders))
        path.with_suffix(".new").rename(path)

    def requests(self, owner: str) -> list[tuple[float, str]]:
        lines = (self.folder / "requests").read_text().splitlines()
        words = [line.split(" ") for line in lines]
        return [(float(time), method) for time, method, whose in words if whose == owner]

    def sandboxes(self, owner: str) -> list[str]:
        """Return the running sandboxes of that token."""
        return [box for box, (whose, _) in self._alive().items() if whose == owner]

    def _alive(self) -> dict[str, list[str]]:
        """Return, by id, the token and the first process of each running sandbox."""
        found: dict[str, list[str]] = {}
        for each in sorted((self.folder / "alive").glob("*")):
            with suppress(FileNotFoundError):
                found[each.name] = each.read_text().split()
        return found

    @property
    def pid(self) -> int:
        """Return the process of the service itself, below `unshare`."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        return int(Path(path).read_text().split()[0])

    def freeze(self) -> None:
        """Stop answering; the sandboxes keep running."""
        os.kill(self.pid, signal.SIGSTOP)

    def refuse(self) -> None:
        """Break every connection, and accept no new one."""
        (self.folder / "refusing").touch()
        until((self.folder / "refused").exists, what="the end of the connections")

    def heal(self) -> None:
        os.kill(self.pid, signal.SIGCONT)
        (self.folder / "refusing").unlink(missing_ok=True)
        until(lambda: not (self.folder / "refused").exists(), what="the service's return")

    def inside(self, box: str, script: str, *, ends: bool = False) -> str:
        """Run a command in a sandbox without the service; it may end with the sandbox."""
        init = self._alive()[box][1]
        within = ("nsenter", "-m", "-p", "-t", str(self.pid), "--", "nsenter", "-t", init)
        space = ("-m", "-u", "-i", "-n", "-p", "-r", f"--wd=/proc/{init}/root/root", "--")
        words = [*within, *space, "sh", "-c", script]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root"}
        done = subprocess.run(words, capture_output=True, timeout=60, env=env)
        assert ends or done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def end(self, owner: str, *names: str) -> None:
        """End these sandboxes as if their machines had failed; by default all of that token."""
        names = names or tuple(self.sandboxes(owner))
        for name in names:
            (self.folder / "doomed" / name).touch()
        until(lambda: not {*names} & {*self.sandboxes(owner)}, what="the end of sandboxes")

    def asked(self, name: str) -> dict[str, Any]:
        """Return the request that a sandbox or an image was created from."""
        found: dict[str, Any] = json.loads((self.folder / "sandboxes" / f"{name}.json").read_text())
        return found


@contextmanager
def cloud(folder: Path, root: Path | None = None) -> Iterator[Cloud]:
    """Start the service in a mount namespace with a tmpfs, which its overlays require.

    Sandboxes use the lab's root by default; the root `/` has all programs of this machine.
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
    """Modal itself, with your login, for `make modal-check`."""

    def __init__(self) -> None:
        """Nothing is started: the service is Modal's."""

    def env(self, owner: str) -> dict[str, str]:
        mine = {key: value for key, value in os.environ.items() if key.startswith("MODAL_")}
        return {"MODAL_CONFIG_PATH": str(Path.home() / ".modal.toml"), **mine}

    def sandboxes(self, owner: str) -> list[str]:
        """Return none: `host destroy` has reported that they ended."""
        return []

    def end(self, owner: str, *names: str) -> None:
        """Do nothing: Modal's own machines are not ended by tests."""


def sockets(cli: Cli) -> list[Path]:
    """Return the sockets that a killed bridge of this home left."""
    with pytest.MonkeyPatch.context() as patch:
        for key, value in cli.env.items():
            if key.startswith("MODAL_"):
                patch.setenv(key, value)
        path = enter.place(str(cli.controller_home))
    return [Path(f"{path}{more}") for more in ("", ".new", ".log", ".lock")]


def owner(cli: Cli) -> str:
    return cli.env.get("MODAL_TOKEN_ID", "")
