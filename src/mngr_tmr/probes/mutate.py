"""A pytest plugin that runs the session once for each mutant, in forks, and then as it is.

It is copied to the host like the probe, as `mngr_tmr_mutate.py`, with `mutants.json` beside it: a
list of [path, text, seconds]. A separate session would cost each mutant half a second. A fork
from before the first conftest costs a tenth, and has imported nothing of the project yet.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
import tempfile
import time

import pytest

OWN = os.path.dirname(os.path.abspath(__file__))
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pluggy import Result


current = ""
"""In a fork: the file for the outcomes of its tests."""


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(args: list[str]) -> None:
    import mngr_tmr_probe as probe  # type: ignore[import-not-found]

    with open(os.path.join(OWN, "mutants.json"), encoding="utf-8") as file:
        mutants = json.load(file)
    for number, (path, text, seconds) in enumerate(mutants):
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            old = file.read()
        told = os.path.join(tempfile.gettempdir(), f"mutant-{os.urandom(6).hex()}")
        _write(path, text)
        child = os.fork()
        if child == 0:
            _begin(told)
            return
        ended = _wait(child, seconds)
        _write(path, old)
        probe.tell({"mutant": number, "outcomes": _read(told) if ended else None})


times = itertools.count(int(time.time()) - 10_000)


def _write(path: str, text: str) -> None:
    """Write a file with a new time: Python compares it with the time in the bytecode."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)
    now = next(times)
    os.utime(path, (now, now))


def _begin(told: str) -> None:
    """Prepare a fork: its own temporary folder, because pytest removes those of older sessions."""
    global current
    current = told
    os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.mkdtemp()
    # A copy of a mutant may have the size and the second of another mutant's copy.
    os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
    os.setpgid(0, 0)


def _wait(child: int, seconds: float) -> bool:
    """Wait for a fork, and return whether it ended by itself."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.01)
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except OSError:
            continue
    os.waitpid(child, 0)
    return False


def _read(told: str) -> dict[str, str] | None:
    """Return the outcomes, or None if the session did not finish or did not collect."""
    try:
        with open(told, encoding="utf-8") as file:
            return dict(json.load(file))
    except (OSError, ValueError):
        return None


found: dict[str, str] = {}
broken: list[str] = []


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Result[pytest.TestReport], None]:
    """Note `failed` for an assertion, `crashed` for any other exception."""
    report = (yield).get_result()
    if report.failed and call.excinfo is not None:
        asserted = isinstance(call.excinfo.value, (AssertionError, pytest.fail.Exception))
        found[item.nodeid] = "failed" if asserted else "crashed"
    else:
        found.setdefault(item.nodeid, report.outcome)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        broken.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if current and not broken:
        with open(f"{current}.new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.rename(f"{current}.new", current)
