"""Run the real CLI with its own home, repository and tmux server."""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mngr.hosts import tmux

ROOT = Path(__file__).parents[2]
KILL_AT, PAUSE_AT, KILLING = "MNGR_KILL_AT", "MNGR_PAUSE_AT", "tests.support.killing"


@dataclass
class Result:
    """The result of a command."""

    argv: list[str]
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def ok(self) -> Result:
        assert self.code == 0, f"{self.argv} exited {self.code}\n{self.out}\n{self.err}"
        return self

    def fails(self, code: int = 1, *words: str) -> Result:
        """Check that it failed with one clean line on stderr that contains each of `words`."""
        assert self.code == code, f"{self.argv} exited {self.code}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err and "internal error" not in self.err, self.err
        line = self.err.strip().splitlines()[-1] if self.err.strip() else ""
        assert line.startswith("mngr"), self.err
        for word in words:
            assert word in line, f"{word!r} not in {line!r}"
        return self


@dataclass
class Cli:
    """`mngr("list")` runs it; `mngr.home` is its home on the host that agents live on."""

    base: Path
    provider: str = "local"
    env: dict[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    """The first words of every command, such as `nsenter` with a network namespace."""
    patience: float = 60
    """Seconds that a command may take, unless a test says otherwise."""

    def __post_init__(self) -> None:
        self.user_home = self.base / "user"
        self.controller_home = self.base / "home"
        self.home = self.base / "bare" if self.provider == "bare" else self.controller_home
        self.repo = self.base / "repo"
        self.user_home.mkdir(parents=True)
        self.env = {
            "HOME": str(self.user_home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "USER": "tester",
            "MNGR_HOST_DIR": str(self.controller_home),
            "MNGR__STOP__GRACE": "3s",
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            # Without the git configuration and identity of the user.
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_COUNT": "3",
            "GIT_CONFIG_KEY_0": "user.name",
            "GIT_CONFIG_VALUE_0": "Tester",
            "GIT_CONFIG_KEY_1": "user.email",
            "GIT_CONFIG_VALUE_1": "tester@example.com",
            "GIT_CONFIG_KEY_2": "init.defaultBranch",
            "GIT_CONFIG_VALUE_2": "main",
        }
        if self.provider == "bare":
            self.env |= {
                "MNGR__PLUGINS__MODULES": '["tests.support.bare"]',
                "MNGR__PROVIDERS__BARE__HOME": str(self.home),
                "MNGR__COMMANDS__CREATE__PROVIDER": "bare",
            }
        shutil.copytree(first_commit(), self.repo)
        self.git("update-index", "--refresh")  # the index knows each file by its inode

    # the repository

    def git(self, *args: str, cwd: Path | str | None = None) -> str:
        done = subprocess.run(
            ["git", *args], cwd=cwd or self.repo, env=self.env, capture_output=True, check=False
        )
        assert done.returncode == 0, f"git {args}: {done.stderr.decode()}"
        return done.stdout.decode().strip()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self, message: str, cwd: Path | str | None = None) -> str:
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    # the command

    def argv(self, *args: str) -> list[str]:
        # The installed program: `python -m` imports runpy first.
        return [*self.within, str(Path(sys.executable).with_name("mngr")), *args]

    def __call__(
        self,
        *args: str,
        input: str | bytes | None = None,
        env: dict[str, str] | None = None,
        cwd: Path | str | None = None,
        timeout: float = 0,
    ) -> Result:
        data = input.encode() if isinstance(input, str) else input
        done = subprocess.run(
            self.argv(*args),
            input=data,
            stdin=subprocess.DEVNULL if data is None else None,
            env=self.environment(env),
            cwd=cwd or self.repo,
            capture_output=True,
            timeout=timeout or self.patience,
            check=False,
        )
        out, err = (
            stream.decode("utf-8", "surrogateescape") for stream in (done.stdout, done.stderr)
        )
        return Result(list(args), done.returncode, out, err)

    def environment(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """Return the variables of a command, with the plugin that kills or pauses it."""
        env = self.env | (more or {})
        if {KILL_AT, PAUSE_AT} & env.keys() and "MNGR__PLUGINS__MODULES" not in (more or {}):
            modules = json.loads(env.get("MNGR__PLUGINS__MODULES", "[]"))
            env["MNGR__PLUGINS__MODULES"] = json.dumps([*modules, KILLING])
        return env

    def start(self, *args: str, **options: object) -> subprocess.Popen[bytes]:
        """Start a command in the background; the caller waits for it or ends it."""
        settings: dict[str, object] = {
            "env": self.env,
            "cwd": self.repo,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
        }
        return subprocess.Popen(self.argv(*args), **(settings | options))  # type: ignore[call-overload, no-any-return]

    # state

    def create(self, name: str, *args: str) -> Result:
        """Create an agent that sleeps, or runs the command after `--`."""
        words = args if "--" in args else (*args, "--", "sleep", "1000")
        return self("create", name, "--no-connect", *words).ok()

    def agent(self, name: str) -> dict[str, Any]:
        everything = self("list", "--format", "json").ok().json()["agents"]
        agents = [agent for agent in everything if agent["name"] == name]
        assert len(agents) == 1, f"{name}: {agents}"
        found: dict[str, Any] = agents[0]
        return found

    def state(self, name: str) -> str:
        return str(self.agent(name)["state"])

    def state_dir(self, name: str) -> Path:
        return self.home / "agents" / str(self.record(name)["id"])

    def work_dir(self, name: str) -> Path:
        return Path(self.record(name)["work_dir"])

    def record(self, name: str) -> dict[str, Any]:
        """Return an agent's record from the hosts' disks, which is faster than `list`."""
        newest: dict[Path, Path] = {}
        for home in {self.home, self.controller_home}:
            for path in home.glob("agents/*/agent.*.json"):
                newest[path.parent] = max(newest.get(path.parent, path), path, key=revision)
        records = [read_record(path) for path in newest.values()]
        found = [record for record in records if record.get("name") == name]
        return found[0] if len(found) == 1 else self.agent(name)

    @property
    def socket(self) -> str:
        return tmux.socket_path(str(self.home), os.getuid())

    def tmux(self, *args: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self.socket, *args], env=self.env, capture_output=True, check=False
        )
        return done.stdout.decode()

    # end

    def close(self) -> None:
        """End the tmux server and every process of this home."""
        # A launcher outlives its terminal for a moment and may start a program meanwhile.
        # The pid of a dead pane may be that of another process now.
        alive = "#{?pane_dead,,#{pane_pid}}"
        panes = [int(pid) for pid in self.tmux("list-panes", "-aF", alive).split()]
        self.tmux("kill-server")
        deadline = time.monotonic() + 10
        while (
            pids := self.processes() + list(filter(lives, panes))
        ) and time.monotonic() < deadline:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.02)
        for leftover in (self.socket, f"{self.socket}.lock"):
            Path(leftover).unlink(missing_ok=True)

    def processes(self) -> list[int]:
        """Return all processes that have this home in their environment."""
        marks = [f"MNGR_HOST_DIR={home}".encode() for home in (self.home, self.controller_home)]
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                    environ = file.readall()
            except OSError:
                continue
            mine = any(mark in environ for mark in marks)  # most are not, and need no splitting
            if mine and any(mark in environ.split(b"\0") for mark in marks) and lives(pid):
                found.append(int(pid))
        return [pid for pid in found if pid != os.getpid()]


def revision(record: Path) -> int:
    number = record.name.split(".")[1]
    return int(number) if number.isdigit() else 0


def read_record(path: Path) -> dict[str, Any]:
    """Return the record in a file; empty if it is none, or was replaced meanwhile."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


@cache
def first_commit() -> Path:
    """Return a repository with one commit, made once per process; every Cli gets a copy."""
    made = Path(tempfile.mkdtemp(prefix="mngr-first-commit-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    git = ["git", "-c", "user.name=Tester", "-c", "user.email=tester@example.com"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    (made / "README").write_text("hello\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=made, env=env, check=True)
    for sample in made.glob(".git/hooks/*.sample"):
        sample.unlink()
    return made


def lives(pid: int | str) -> bool:
    """Return whether a process is running; a zombie is not."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def first_line(running: subprocess.Popen[bytes], timeout: float = 15) -> bytes:
    """Return the first line of a started command; end the command if nothing arrives."""
    assert running.stdout is not None
    if not select.select([running.stdout], [], [], timeout)[0]:
        running.kill()
        raise AssertionError(f"{running.args!r} printed nothing within {timeout} s")
    return running.stdout.readline()


def until(condition: Callable[[], object], timeout: float = 60, what: str = "") -> None:
    """Wait for a condition; on failure, raise an error that names it.

    It pauses between two checks for as long as a check takes, because a check may be a whole
    command, and the awaited process requires CPU time too.
    """
    deadline = time.monotonic() + timeout
    began = time.monotonic()
    while not condition():
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"not within {timeout} s: {what or condition}")
        time.sleep(max(0.02, min(now - began, 0.5)))
        began = time.monotonic()


def has_looked(process: subprocess.Popen[bytes], faults: int = 1) -> bool:
    """Return whether it has read the states of agents, which requires a child process.

    Every child adds some hundred minor page faults.
    """
    after_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[8]) >= faults  # minor faults of children that were waited for
