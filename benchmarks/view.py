"""The report: the time to open a thousand tests in a browser, and to write one change."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row
from mngr_outcome.codec import to_json
from mngr_tmr.journal.model import Ended, Outcome
from mngr_view.writing import Report
from tests.support.browser import Browser, program
from tests.support.journals import large_run, task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchmarks.run import Bench

TESTS = 1000


def rows(bench: Bench) -> list[Row]:
    story = large_run(bench.base / "report", TESTS)
    report = Report(story.folder, bench.base / "pages")
    whole = _taken(report.update)
    fresh = []
    for node in story.tests[:7]:
        about = {"task": task(node), "try": 1}
        story.tell(("try_ended", {**about, "ended": to_json(Ended(Outcome.DIED, "gone"))}))
        fresh.append(_taken(report.update))
    renewed = statistics.median(fresh) * 1000
    first = Row(
        f"report of {TESTS} tests: one more result", renewed, whole * 1000, renewed, 500, "ms"
    )
    return [first, *_opened(report.update(), bench.base / "empty.html")]


def _opened(page: Path, empty: Path) -> list[Row]:
    if not program():
        return []
    empty.write_text("<!doctype html><title>empty</title>")
    with Browser() as browser:
        ours = [_taken(lambda: browser.open(page)) for _ in range(5)]
        raw = [_taken(lambda: browser.open(empty)) for _ in range(5)]
    taken = statistics.median(ours) * 1000
    name = f"report of {TESTS} tests opens in a browser"
    return [Row(name, taken, statistics.median(raw) * 1000, taken, 2000, "ms")]


def _taken(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
