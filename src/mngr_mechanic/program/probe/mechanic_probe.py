"""A pytest plugin that collects once, then runs requested tests in forks.

Starting pytest and collecting takes longer than most tests. The process that forks must not have
imported the code that is edited, because that changes between two forks; if the tests of a project
import it, the forks are made before anything is collected.
"""

# pytest and the tests pass values of any type.
# mypy: disallow-any-explicit=false
from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Generator
from typing import IO, Any, Optional

import mechanic_frames  # type: ignore[import-not-found]
import mechanic_places  # type: ignore[import-not-found]
import mechanic_runs  # type: ignore[import-not-found]
import pytest

PLACE = "mechanic-tests-go-here"
EARLY = os.environ.get("MECHANIC_EARLY") == "1"


class Conversation:
    """The conversation with the mechanic, over a socket."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines: IO[str] = self.socket.makefile("r", encoding="utf-8")

    def say(self, message: dict[str, Any]) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def serve(self) -> Optional[dict[str, Any]]:
        """Return its request in each child, and None in the parent when the mechanic is gone."""
        for line in self.lines:
            request = json.loads(line)
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os.setpgid(0, 0)
                os.environ.update(request["env"])
                return dict(request)
            self.say(self.await_child(child, request))
        return None

    def await_child(self, child: int, request: dict[str, Any]) -> dict[str, Any]:
        deadline = time.monotonic() + request["seconds"]
        pause = 0.001
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                _end(child, request["env"]["MECHANIC_RUN"])
                os.waitpid(child, 0)
                return {"timed_out": True}
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return {"timed_out": False}


def _end(child: int, run: str) -> None:
    """End the child's group, and processes outside it that carry the mark of this run."""
    mark = f"MECHANIC_RUN={run}".encode()
    names = os.listdir("/proc") if os.path.isdir("/proc/self") else []
    for pid in map(int, filter(str.isdigit, names)):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if pid != os.getpid() and mark in file.read().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        os.kill(child, signal.SIGKILL)


class Reports:
    """Writes the result of each test as it ends, to a file that the mechanic reads."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request
        self.file = open(request["report"], "a", encoding="utf-8")
        self.at = 0

    def write(self, entry: dict[str, Any]) -> None:
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()


_reports: Optional[Reports] = None
"""Exists as soon as this process knows what to do."""


# pytest's hooks


@pytest.hookimpl(hookwrapper=True, trylast=True)  # before pytest-cov starts to measure
def pytest_load_initial_conftests(
    early_config: pytest.Config, args: list[str]
) -> Generator[None, None, None]:
    early_config.known_args_namespace.no_cov = True
    if EARLY:
        _begin_early(args)
    yield


def _begin_early(args: list[str]) -> None:
    global _reports
    alone = os.environ.get("MECHANIC_REQUEST")
    request = json.loads(alone) if alone else _served([])
    _reports = Reports(request)
    if PLACE in args:
        # Files, not tests: one id that pytest does not find would end the whole session. A single
        # test, as most requests have, is found sooner by its id.
        tests = request["tests"]
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        places = tests if len(tests) == 1 else list(files)
        args[:] = [word for word in args if word != PLACE] + places
        _wanted.extend(tests)


_wanted: list[str] = []
"""In a fork that collects by itself: the tests to run, in this order; if empty, all."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _select(items, _wanted)


def _select(items: list[pytest.Item], tests: list[str]) -> None:
    """Keep these tests, or tests of these files, in their order; if none is named, keep all."""
    places = {test: at for at, test in enumerate(tests)}

    def place(item: pytest.Item) -> int:
        return places.get(item.nodeid, places.get(item.nodeid.partition("::")[0], -1))

    if tests:
        items[:] = sorted((item for item in items if place(item) >= 0), key=place)


def _served(tests: list[str]) -> dict[str, Any]:
    conversation = Conversation(os.environ.pop("MECHANIC_SOCKET"))
    conversation.say({"ready": True, "tests": tests})
    request = conversation.serve()
    if request is None:
        # The mechanic is gone, perhaps killed, so nothing else removes its files. Only a folder
        # with its name is removed: a lab may be directly below /tmp.
        base = os.environ["MECHANIC_BASE"]
        if os.path.basename(base).startswith("mech-"):
            shutil.rmtree(base, ignore_errors=True)
        os._exit(0)
    conversation.socket.close()
    return request


@pytest.hookimpl(hookwrapper=True, trylast=True)  # a fork does not return to other wrappers
def pytest_runtestloop(session: pytest.Session) -> Generator[None, None, None]:
    global _reports
    forks = not EARLY and "MECHANIC_SOCKET" in os.environ
    if forks:
        if _imports_code(os.environ["MECHANIC_ROOT"]):
            Conversation(os.environ["MECHANIC_SOCKET"]).say({"ready": False})
            os._exit(0)
        _reports = Reports(_served([item.nodeid for item in session.items]))
        _select(session.items, _reports.request["tests"])
        session.testsfailed = 0  # files that cannot be collected do not concern the others
    if _reports is not None:
        mechanic_runs.prepare(_reports.request)
        session.config.option.maxfail = int(_reports.request["stop"])
    yield
    if forks:
        sys.stdout.flush()
        os._exit(0)


def _imports_code(root: str) -> bool:
    """Return whether modules of the project that are not tests are loaded."""
    tests = json.loads(os.environ["MECHANIC_TESTS"])
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    names = {mechanic_places.place(file, root) for file in files} - {""}
    return any(not (f"{name}/").startswith(tuple(f"{test}/" for test in tests)) for name in names)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write all node ids, if nothing else is requested."""
    if "MECHANIC_COLLECT" in os.environ:
        with open(os.environ["MECHANIC_COLLECT"], "w", encoding="utf-8") as file:
            json.dump([item.nodeid for item in session.items], file)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    reports = _reports
    mechanic_runs.began()
    if reports is None or not reports.request["trace"]:
        yield
        return
    import mechanic_trace  # type: ignore[import-not-found]

    folder = os.path.join(reports.request["trace"], str(reports.at))
    os.makedirs(folder, exist_ok=True)
    reports.at += 1
    os.environ["MECHANIC_TRACE"] = folder
    # The project's code runs in this process only where its tests import it.
    stop = mechanic_trace.start(folder) if EARLY else None
    yield
    if stop is not None:
        stop()
    with open(os.path.join(folder, "test"), "w", encoding="utf-8") as file:
        file.write(item.nodeid)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, None]:
    result = yield
    if _reports is None:
        return
    report = result.get_result()
    entry: dict[str, Any] = {
        "test": item.nodeid,
        "when": report.when,
        "outcome": report.outcome,
        "seconds": round(report.duration, 4),
    }
    if call.excinfo is not None and report.outcome == "failed":
        entry["failure"] = mechanic_frames.failure(call.excinfo.value, str(item.path))
    if report.when == "call":
        entry["commands"] = mechanic_runs.ended()
    _reports.write(entry)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed and _reports is not None:
        entry = {"test": report.nodeid, "when": "collect", "outcome": "failed", "seconds": 0.0}
        message = str(report.longrepr)[-8000:]
        known = {"type": "CollectError", "message": message, "frames": [], "line": 0, "values": {}}
        _reports.write({**entry, "failure": known})
