"""A pytest plugin that tells which lines of the project each test reaches, as the probe does.

It travels like the probe, as `mngr_tmr_reach.py`. Pythons that a test starts are followed too: they
find a `sitecustomize.py` of ours first, and write their lines to a folder of the test's own.
"""

# What programs are started with is anything.
# mypy: disallow-any-explicit=false
from __future__ import annotations

import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from types import FrameType

    import pytest

    Trace = Callable[[FrameType, str, object], object]

START = "import mngr_tmr_reach\nmngr_tmr_reach.follow()\n"
OWN = os.path.dirname(os.path.abspath(__file__))
FOLDER = "LINES_REACHED_BY_TEST"
scratch = ""
"""A folder for what is noted; OWN cannot be written to in a sandbox."""


class Lines:
    """Of all files below a folder; written down at once, because a process may be killed."""

    def __init__(self, root: str, folder: str) -> None:
        self.root, self.seen = root + os.sep, set[tuple[str, int]]()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self.file = os.open(os.path.join(folder, str(os.getpid())), flags, 0o600)

    def call(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        inside = frame.f_code.co_filename.startswith(self.root)
        return self.line(frame, event, argument) if inside else None

    def line(self, frame: FrameType, event: str, argument: object) -> Trace:
        place = (frame.f_code.co_filename, frame.f_lineno)
        if place not in self.seen:
            self.seen.add(place)
            text = f"{place[1]}\t{place[0][len(self.root) :]}\n"
            os.write(self.file, text.encode("utf-8", "surrogateescape"))
        return self.line


def _trace(lines: Lines) -> None:
    threading.settrace(lines.call)  # type: ignore[arg-type]
    sys.settrace(lines.call)  # type: ignore[arg-type]


def follow() -> None:
    """In a Python that a test started."""
    folder = os.environ.get(FOLDER, "")
    if os.path.isdir(folder):
        with open(os.path.join(folder, "root"), encoding="utf-8") as file:
            _trace(Lines(file.read(), folder))


def _followed(folder: str) -> Callable[[], None]:
    """Every program started from now on gets our variables, whatever environment it is given."""
    import subprocess

    begin: Callable[..., None] = subprocess.Popen.__init__

    def started(
        self: object, *args: object, env: Mapping[str, str] | None = None, **given: object
    ) -> None:
        path = [os.path.join(scratch, "start"), OWN, (env or os.environ).get("PYTHONPATH", "")]
        ours = {FOLDER: folder, "PYTHONPATH": os.pathsep.join(filter(None, path))}
        begin(self, *args, env={**(os.environ if env is None else env), **ours}, **given)

    def replace(method: Callable[..., None]) -> None:
        subprocess.Popen.__init__ = method  # type: ignore[method-assign]

    replace(started)
    return lambda: replace(begin)


def pytest_configure(config: pytest.Config) -> None:
    import tempfile

    global scratch
    scratch = tempfile.mkdtemp()
    os.makedirs(os.path.join(scratch, "start"))
    with open(os.path.join(scratch, "start", "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(START)


def pytest_unconfigure() -> None:
    import shutil

    shutil.rmtree(scratch, ignore_errors=True)


def _around(item: pytest.Item) -> Generator[None, None, None]:
    folder = os.path.join(scratch, f"reach-{os.urandom(6).hex()}")
    os.makedirs(folder)
    root = os.path.realpath(item.config.rootpath)
    with open(os.path.join(folder, "root"), "w", encoding="utf-8") as file:
        file.write(root)
    undo = _followed(folder)
    _trace(Lines(root, folder))
    try:
        yield
    finally:
        sys.settrace(None)
        threading.settrace(None)
        undo()
        _tell(item.nodeid, folder)


def _tell(node_id: str, folder: str) -> None:
    import mngr_tmr_probe as probe  # type: ignore[import-not-found]

    found: dict[str, set[int]] = {}
    for line, path in _read(folder):
        found.setdefault(path, set()).add(line)
    for path, lines in found.items():
        probe.tell({"reached": node_id, "file": path, "lines": sorted(lines)})


def _read(folder: str) -> Iterator[tuple[int, str]]:
    for name in os.listdir(folder):
        if name.isdigit():
            with open(os.path.join(folder, name), errors="surrogateescape") as file:
                for entry in file:
                    line, tab, path = entry.rstrip("\n").partition("\t")
                    if tab and line.isdigit():
                        yield int(line), path


def _hooked() -> None:
    """Where pytest is: the Pythons that are followed may have none."""
    import pytest

    hook = pytest.hookimpl(hookwrapper=True, trylast=True)
    globals()["pytest_runtest_protocol"] = hook(_around)


if "pytest" in sys.modules:
    _hooked()
