"""A pytest plugin that tells what it collected and how each test went, as JSON lines.

It travels to wherever the tests run as one file, `mngr_tmr_probe.py`, so it imports nothing but
pytest and the standard library. $MNGR_TMR_PROBE names the file it writes; $MNGR_TMR_SELECT, if
set, a JSON list of the node ids to run.
"""

from __future__ import annotations

import json
import os

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Protocol

    class Result(Protocol):
        def get_result(self) -> pytest.TestReport: ...


DOC_LIMIT = 20_000
MESSAGE_LIMIT = 4_000


def tell(entry: dict[str, object]) -> None:
    with open(os.environ["MNGR_TMR_PROBE"], "a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        doc = getattr(getattr(item, "function", None), "__doc__", None) or ""
        path = item.nodeid.split("::")[0]
        tell({"collected": item.nodeid, "file": path, "doc": doc[:DOC_LIMIT]})
    chosen = os.environ.get("MNGR_TMR_SELECT")
    if not chosen:
        return
    with open(chosen, encoding="utf-8") as file:
        wanted = set(json.load(file))
    # A function may stand for all tests that its parameters make of it.
    names = {item.nodeid: {item.nodeid, item.nodeid.partition("[")[0]} for item in items}
    left_out = [item for item in items if not names[item.nodeid] & wanted]
    items[:] = [item for item in items if names[item.nodeid] & wanted]
    config.hook.pytest_deselected(items=left_out)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        tell({"error": report.nodeid, "message": str(report.longrepr)[-MESSAGE_LIMIT:]})


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Result, None]:
    outcome = yield
    report = outcome.get_result()
    entry = {
        "test": report.nodeid,
        "stage": report.when,
        "outcome": report.outcome,
        "seconds": round(report.duration, 4),
    }
    if report.failed and call.excinfo is not None:
        entry["exception"] = call.excinfo.typename
        entry["message"] = str(call.excinfo.value)[:MESSAGE_LIMIT]
        entry["frame"] = _frame(item, call.excinfo)
    tell(entry)


def _frame(item: pytest.Item, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """The innermost frame inside the project, without its line number, which moves."""
    root = str(item.config.rootpath) + os.sep
    inside = ""
    for entry in excinfo.traceback:
        path = str(entry.path)
        if path.startswith(root) and f"{os.sep}site-packages{os.sep}" not in path:
            inside = f"{path[len(root) :]}:{entry.frame.code.name}"
    return inside


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    tell({"finished": int(exitstatus)})
