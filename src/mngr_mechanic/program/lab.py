"""A copy of the project with a running pytest in it, which runs chosen tests without a restart."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from functools import cached_property
from typing import IO, Optional

from mngr_mechanic.program import project, reports
from mngr_mechanic.program.reports import PytestRun

START_SECONDS = 120.0
ANEW_SECONDS = 60.0
PLACE = "mechanic-tests-go-here"
# Python compares size and whole seconds with the bytecode, so edits in one second look the same.
FUTURE = 10_000


class Broken(Exception):
    """pytest does not start in this project."""


class Lab:
    """One copy of the project, in which edits are made until one is known to be correct."""

    def __init__(self, root: str, base: str, probe: str, python: str, tests: list[str]) -> None:
        self.root = os.path.join(base, "p")
        self.base, self.probe, self.python = base, probe, python
        self.tests = tests
        self.command = self.settings = ""
        self._count = 0
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._lines: Optional[IO[str]] = None
        self._socket: Optional[socket.socket] = None
        self._early = False
        self._collected: Optional[list[str]] = None
        self._stamp = int(time.time()) - FUTURE
        project.copy(root, self.root)
        self.test_places = project.test_places(self.root)

    # files

    def read(self, path: str) -> str:
        with open(os.path.join(self.root, path), encoding="utf-8", newline="") as file:
            return file.read()

    def write(self, path: str, text: str) -> None:
        """Write a file, with a time of change that no earlier version had."""
        place = os.path.join(self.root, path)
        with open(place, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        self._stamp += 1
        os.utime(place, (self._stamp, self._stamp))

    # running

    def run(
        self,
        tests: "list[str] | tuple[str, ...]" = (),
        *,
        seconds: float,
        stop: bool = False,
        trace: str = "",
        fresh: bool = False,
        bend: Optional[dict[str, object]] = None,
        noop: bool = False,
    ) -> PytestRun:
        """Run tests and return their results.

        `fresh`: the tests themselves have changed, so they are collected again.
        `noop`: the commands of end-to-end tests are not run.
        """
        self._count += 1
        report = os.path.join(self.base, f"report-{self._count}")
        env = {"MECHANIC_RUN": f"{os.getpid()}-{self.base}-{self._count}"}
        env |= {"MNGR_E2E_NOOP": "1"} if noop else {}
        request: dict[str, object] = {"tests": list(tests), "seconds": seconds, "stop": stop}
        request |= {"trace": trace, "bend": bend, "report": report, "env": env}
        alone = fresh or bool(self.command)
        if self._process is None and not alone:
            self._start()
        began = time.monotonic()
        if alone:
            env |= {"MECHANIC_REQUEST": json.dumps(request), "MECHANIC_EARLY": "1"}
            timed_out = self._alone(tests, env, seconds + 5)
        else:
            timed_out = self._asked(request)
        found = reports.read(report)
        if os.path.exists(report):
            os.unlink(report)
        return PytestRun(found, timed_out, time.monotonic() - began)

    def passes_anew(self, test: str, noop: bool = False) -> bool:
        """Return whether a test passes that has just been changed."""
        return self.run([test], seconds=ANEW_SECONDS, fresh=True, noop=noop).passed([test])

    def _asked(self, request: dict[str, object]) -> bool:
        """Ask the running pytest, and return whether the request timed out."""
        assert self._socket is not None
        assert self._lines is not None
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            line = self._lines.readline()
        except OSError:
            line = ""
        if not line:
            self.close()  # pytest died: the next request starts another one
            return True
        return bool(json.loads(line)["timed_out"])

    def _alone(
        self, tests: "list[str] | tuple[str, ...]", env: dict[str, str], seconds: float
    ) -> bool:
        """Run tests in a new pytest, and return whether it timed out."""
        if not self.command:
            return self._timed_out([*self._pytest, PLACE], env, seconds)
        words = " ".join(map(shlex.quote, tests))
        argv = ["/bin/sh", "-c", self.command.replace("NODEID", words)]
        return self._timed_out(argv, {**env, "PYTEST_ADDOPTS": "-p mechanic_probe"}, seconds)

    def _timed_out(self, argv: list[str], env: dict[str, str], seconds: float) -> bool:
        process = self._spawned(argv, env)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
        return False

    def _spawned(self, argv: list[str], env: dict[str, str]) -> "subprocess.Popen[bytes]":
        # Capturing replaces the files that the forks write to: each fork has its own anyway.
        with open(os.path.join(self.base, "out"), "wb") as out:
            return subprocess.Popen(
                argv,
                cwd=self.root,
                env=self._environment() | env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @cached_property
    def _pytest(self) -> list[str]:
        argv = [self.python, "-m", "pytest", "-q", "-p", "mechanic_probe"]
        argv += ["-o", f"cache_dir={os.path.join(self.base, 'cache')}"]
        argv += ["--basetemp", os.path.join(self.base, "t"), "--rootdir", self.root]
        argv += ["-c", self.settings] if self.settings else []
        xdist = [self.python, "-c", "import xdist"]
        done = subprocess.run(xdist, cwd="/", capture_output=True, check=False)
        return argv if done.returncode else [*argv, "-n", "0"]

    def _environment(self) -> dict[str, str]:
        hidden = ("MNGR_AGENT_", "MNGR_TMR_", "MNGR_E2E_", "PYTEST_", "COVERAGE_", "MECHANIC_")
        env = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        roots = project.import_roots(self.root)
        path = [self.probe, *roots, *env.get("PYTHONPATH", "").split(os.pathsep)]
        return {
            **env,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            "MECHANIC_ROOT": self.root,
            "MECHANIC_BASE": os.path.dirname(self.base),
            "MECHANIC_PATH": os.pathsep.join(roots),
            "MECHANIC_TESTS": json.dumps(self.test_places),
            "MNGR_E2E_RUN": "mechanic",
        }

    def collect(self) -> list[str]:
        """Return every test's node id."""
        if self._process is None and not self.command:
            self._start()
        if self._collected is None:
            path = os.path.join(self.base, "collected")
            words = [*self._pytest, *self.tests, "--collect-only"]
            self._timed_out(words, {"MECHANIC_COLLECT": path}, START_SECONDS)
            if not os.path.exists(path):
                return []
            with open(path, encoding="utf-8") as file:
                self._collected = list(json.load(file))
        return self._collected

    # the server

    def _start(self) -> None:
        for early in (self._early, True):
            self._early = early
            if self._launched():
                return
        with open(os.path.join(self.base, "out"), encoding="utf-8", errors="replace") as file:
            raise Broken("pytest does not collect the tests; " + file.read()[-4000:])

    def _launched(self) -> bool:
        path = os.path.join(self.base, "s")
        if os.path.exists(path):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(0.2)
            places = [PLACE] if self._early else self.tests
            env = {"MECHANIC_SOCKET": path, "MECHANIC_EARLY": str(int(self._early))}
            self._process = self._spawned([*self._pytest, *places], env)
            connection = self._connected(listener)
        if connection is None:
            return False
        self._socket = connection
        self._lines = connection.makefile("r", encoding="utf-8")
        hello = json.loads(self._lines.readline() or "{}")
        if not hello.get("ready"):
            self.close()
            return False
        if hello["tests"]:
            self._collected = list(hello["tests"])
        return True

    def _connected(self, listener: socket.socket) -> Optional[socket.socket]:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            try:
                return listener.accept()[0]
            except socket.timeout:
                if self._process.poll() is not None:
                    break
        self.close()
        return None

    def close(self) -> None:
        if self._socket is not None and self._lines is not None:
            self._lines.close()
            self._socket.close()
            self._socket = None
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def discard(self) -> None:
        self.close()
        shutil.rmtree(self.base, ignore_errors=True)
