"""A pytest plugin that tells which lines of the project each test runs, as the probe's JSON lines.

It travels like the probe. coverage.py measures where the project's Python has it, else a tracer of
our own, which is slower. Of what a test starts, mngr_e2e may have measured the lines.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from types import FrameType

    import coverage

    Lines = dict[str, set[int]]

ROOM = 12 << 20
"""Bytes for all that is told: it shares its way with the results."""
RAN = "select file.path, line_bits.numbits from line_bits join file on file.id = line_bits.file_id"
ARCS = "select file.path, arc.tono from arc join file on file.id = arc.file_id where arc.tono > 0"
OUTSIDE = (f"{os.sep}site-packages{os.sep}", f"{os.sep}.venv{os.sep}", f"{os.sep}.mngr-e2e{os.sep}")


class ByCoverage:
    def __init__(self, root: str) -> None:
        import coverage

        omit = [f"*{part}*" for part in OUTSIDE]
        self._coverage: coverage.Coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{root}*"], omit=omit, messages=False
        )
        self._coverage.start()

    def begin(self, test: str) -> None:
        self._coverage.switch_context(test)

    def end(self) -> Lines:
        self._coverage.switch_context("")
        return {}  # it is all told at once, when everything has run

    def close(self) -> dict[str, Lines]:
        self._coverage.stop()
        data = self._coverage.get_data()
        found: dict[str, Lines] = {}
        for path in data.measured_files():
            for line, tests in data.contexts_by_lineno(path).items():
                for test in filter(None, tests):
                    found.setdefault(test, {}).setdefault(path, set()).add(line)
        return found


class ByTrace:
    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: Lines = {}

    def begin(self, test: str) -> None:
        import threading

        self._seen = {}
        threading.settrace(self._call)  # type: ignore[arg-type]
        sys.settrace(self._call)  # type: ignore[arg-type]

    def end(self) -> Lines:
        import threading

        sys.settrace(None)
        threading.settrace(None)
        return self._seen

    def close(self) -> dict[str, Lines]:
        return {}

    def _call(self, frame: FrameType, event: str, arg: object) -> object:
        path = os.path.realpath(frame.f_code.co_filename)
        if not path.startswith(self._root) or any(part in path for part in OUTSIDE):
            return None
        lines = self._seen.setdefault(path, set())

        def line(frame: FrameType, event: str, arg: object) -> object:
            lines.add(frame.f_lineno)
            return line

        return line(frame, event, arg)


class Reach:
    def __init__(self, config: pytest.Config) -> None:
        self._root = os.path.realpath(config.rootpath) + os.sep
        self._room = ROOM
        self._started = ""
        self._measure: ByCoverage | ByTrace
        try:
            self._measure = ByCoverage(self._root)
        except Exception:  # not installed, too old, or somebody else measures in its way
            self._measure = ByTrace(self._root)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        self._started = ""
        self._measure.begin(item.nodeid)
        try:
            yield
        finally:
            lines = self._measure.end()
        for path, more in _of_programs(self._started):
            lines.setdefault(os.path.realpath(path), set()).update(more)
        if lines:
            self._tell(item.nodeid, lines)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        folder = getattr(getattr(item, "funcargs", {}).get("e2e"), "artifacts", None)
        self._started = os.path.join(folder, "coverage") if folder is not None else ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        for test, lines in self._measure.close().items():
            self._tell(test, lines)

    def _tell(self, test: str, lines: Lines) -> None:
        inside = {
            path[len(self._root) :]: ranges(found)
            for path, found in lines.items()
            if path.startswith(self._root)
        }
        self._room -= len(test) + sum(len(path) + len(each) + 8 for path, each in inside.items())
        if inside and self._room > 0:
            import mngr_tmr_probe  # type: ignore[import-not-found]

            mngr_tmr_probe.tell({"ran": test, "lines": inside})


def ranges(lines: Iterable[int]) -> str:
    """1-3,7"""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _of_programs(path: str) -> Iterator[tuple[str, set[int]]]:
    """What coverage.py measured in the programs that the test started."""
    if not path or not os.path.isfile(path):
        return
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path)) as data:
        for name, bits in data.execute(RAN):
            yield (
                str(name),
                {at * 8 + n for at, b in enumerate(bits) for n in range(8) if b >> n & 1},
            )
        for name, line in data.execute(ARCS):
            yield str(name), {int(line)}


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Reach(config), "mngr_tmr_each_line")
