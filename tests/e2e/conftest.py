"""Each test has its own repository, its own home of mngr and so its own tmux server."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_e2e import E2eSession
from tests.e2e.world import ask_tmux, host_dir, socket
from tests.support.cli import lives, until

BEGIN = """
git init -q -b main
git config user.name Reader
git config user.email reader@example.com
echo hello > README.md
git add README.md
git commit -qm Begin
"""

LAUNCHER = """#!{python}
import sys
sys.path[0] = {source!r}
from mngr.cli.app.main import main
sys.exit(main())
"""


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mngr` is the one beside these tests, whichever is installed."""
    path = tmp_path_factory.mktemp("bin") / "mngr"
    source = Path(__file__).parents[2] / "src"
    path.write_text(LAUNCHER.format(python=sys.executable, source=str(source)))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one commit, made once."""
    path = tmp_path_factory.mktemp("beginning")
    clean = {"HOME": str(path), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["sh", "-ec", BEGIN], cwd=path, env=clean, check=True)
    return path


@pytest.fixture(autouse=True)
def world(e2e: E2eSession, beginning: Path, launcher: Path) -> Iterator[None]:
    shutil.copytree(beginning, e2e.work, dirs_exist_ok=True)
    e2e.env["PATH"] = f"{launcher.parent}{os.pathsep}{e2e.env['PATH']}"
    e2e.env["MNGR_HOST_DIR"] = str(e2e.home.parent / "mngr")
    e2e.env["MNGR__STOP__GRACE"] = "3s"
    e2e.env["GIT_CONFIG_NOSYSTEM"] = "1"
    yield
    close(e2e)


def close(e2e: E2eSession) -> None:
    """End the tmux server and everything that belongs to this home."""
    alive = "#{?pane_dead,,#{pane_pid}}"  # that of a dead pane may belong to another process now
    panes = [int(pid) for pid in ask_tmux(e2e, "list-panes", "-aF", alive) if pid]
    ask_tmux(e2e, "kill-server")
    until(lambda: not end(processes(host_dir(e2e)) + list(filter(lives, panes))))
    for leftover in (socket(e2e), socket(e2e).with_name(f"{socket(e2e).name}.lock")):
        leftover.unlink(missing_ok=True)


def end(pids: list[int]) -> list[int]:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return pids


def processes(home: Path) -> list[int]:
    """Whatever carries this home in its environment."""
    mark = f"MNGR_HOST_DIR={home}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0") and lives(entry.name):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
