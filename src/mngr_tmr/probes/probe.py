"""A pytest plugin that reports what it collected and how each test went, as JSON lines.

It is copied to the host as one file, `mngr_tmr_probe.py`, and imports nothing but pytest and the
standard library. Its orders are one JSON object on standard input, read before any module of the
project is imported; its lines go to what standard output was then, each with the run's nonce.
Neither is in the environment, in the arguments or in a file, where the code under test could find
it. What pytest prints goes to standard error instead.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Protocol

    from pluggy import Result

    class Node(Protocol):
        """A worker of xdist, as its controller sees it."""

        workerinput: dict[str, str]
        workeroutput: dict[str, str]


DOC_LIMIT = 20_000
MESSAGE_LIMIT = 4_000
KEY = "mngr_tmr"
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ


def _orders() -> dict[str, object]:
    """Return the orders; a worker of xdist gets them from its controller, not from stdin."""
    if IS_WORKER:
        return {}
    told = b""
    while chunk := os.read(0, 1 << 16):
        told += chunk
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    orders: dict[str, object] = json.loads(told)
    return orders


def _channel() -> int:
    if IS_WORKER:
        return -1
    channel = os.dup(1)
    os.dup2(2, 1)
    return channel


orders = _orders()
_pipe, _process = _channel(), os.getpid()
_kept: list[dict[str, object]] = []
"""The reports of a worker of xdist, which it sends when it ends."""
for _name in [each for each in os.environ if each.startswith("MNGR_")]:
    del os.environ[_name]


def tell(entry: dict[str, object]) -> None:
    if os.getpid() != _process:
        return
    if IS_WORKER:
        _kept.append(entry)
        return
    line = memoryview((json.dumps({"nonce": orders["nonce"], **entry}) + "\n").encode())
    while line:
        line = line[os.write(_pipe, line) :]


@pytest.hookimpl(hookwrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, None, None]:
    """Turn pytest-cov off: it cannot measure together with `lines`, and decides the exit code."""
    early_config.known_args_namespace.no_cov = True
    yield


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    given = getattr(config, "workerinput", {}).get(KEY)
    if given:
        orders.update(json.loads(given))
    config.option.maxfail = 0  # a verdict requires every test
    _hide_the_test()
    _switch()


def _hide_the_test() -> None:
    """Keep pytest from putting the name of the running test into the environment."""
    from _pytest import runner

    if hasattr(runner, "_update_current_test_var"):
        runner._update_current_test_var = lambda item, when: None


def _switch() -> None:
    """Set switches of mngr_e2e where no test sees them."""
    given = orders.get("switches")
    switches = sys.modules.get("mngr_e2e.switches")
    if not given or not isinstance(given, dict):
        return
    if switches is not None:
        switches.take(given)
    elif "mngr_e2e.plugin" in sys.modules:  # an older mngr_e2e reads only the environment
        os.environ.update(given)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Node) -> None:
    """Give a worker the orders without the nonce: it reports to its controller."""
    node.workerinput[KEY] = json.dumps({**orders, "nonce": ""})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Node, error: object) -> None:
    for entry in json.loads(getattr(node, "workeroutput", {}).get(KEY, "[]")):
        tell(entry)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        doc = getattr(getattr(item, "function", None), "__doc__", None) or ""
        path = item.nodeid.split("::")[0]
        tell({"collected": item.nodeid, "file": path, "doc": str(doc)[:DOC_LIMIT]})
    chosen = orders.get("select")
    if not isinstance(chosen, list) or not chosen:
        return
    wanted = set(chosen)
    # The name of a function selects all its cases.
    names = {item.nodeid: {item.nodeid, item.nodeid.partition("[")[0]} for item in items}
    left_out = [item for item in items if not names[item.nodeid] & wanted]
    items[:] = [item for item in items if names[item.nodeid] & wanted]
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish(session: pytest.Session) -> None:
    # Items that a plugin makes may share a node id: they count as one test.
    for node_id, times in Counter(item.nodeid for item in session.items).items():
        tell({"selected": node_id, "times": times})


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed and not IS_WORKER:
        tell({"error": report.nodeid, "message": str(report.longrepr)[-MESSAGE_LIMIT:]})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Result[pytest.TestReport], None]:
    """Attach what only this process knows to the report, which xdist sends as data."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None:
        known = {
            "exception": call.excinfo.typename,
            "message": _text(call.excinfo.value)[:MESSAGE_LIMIT],
            "frame": _frame(item, call.excinfo),
        }
        setattr(report, KEY, known)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if IS_WORKER:
        return
    tell(
        {
            "test": report.nodeid,
            "stage": str(report.when),
            "outcome": str(report.outcome),
            "seconds": round(report.duration, 4),
            "part": type(report) is not pytest.TestReport,  # a subtest, which is part of a test
            **getattr(report, KEY, {}),
        }
    )


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own __str__ may be the defect
        return ""


def _frame(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """Return the innermost frame inside the project, without its line number, which may change."""
    root = str(item.config.rootpath) + os.sep
    inside = ""
    for entry in excinfo.traceback:
        path = str(entry.path)
        if path.startswith(root) and f"{os.sep}site-packages{os.sep}" not in path:
            inside = f"{path[len(root) :]}:{entry.frame.code.name}"
    return inside


@pytest.hookimpl(hookwrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Report the end after all other plugins, which may change the exit status."""
    if IS_WORKER:
        session.config.workeroutput[KEY] = json.dumps(_kept)  # type: ignore[attr-defined]
    yield
    if not IS_WORKER:
        tell({"finished": int(session.exitstatus)})
