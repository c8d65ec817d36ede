"""A pytest plugin that reports which lines of the project each test runs.

It is copied to the host like the probe, as `mngr_tmr_lines.py`, with the mechanic's tracer.
coverage.py measures if the project's Python has it, otherwise the tracer, which is slower. Pythons
that a test starts are traced too: they find a `sitecustomize.py` of ours first, and write their
lines to a folder of the test's own.
"""

# The arguments of a started program may have any type.
# mypy: disallow-any-explicit=false
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    import coverage
    import pytest

    Lines = dict[str, set[int]]

ROOM = 12 << 20
"""Bytes for all reports: they share the channel with the results."""
OUTSIDE = (f"{os.sep}site-packages{os.sep}", f"{os.sep}.venv{os.sep}", f"{os.sep}.mngr-e2e{os.sep}")
OWN = os.path.dirname(os.path.abspath(__file__))
FOLDER = "LINES_REACHED_BY_TEST"
ENV = 10
"""The place of `env` among the arguments of subprocess.Popen."""

# This file hides another sitecustomize.py, so it imports that one.
START = """import os, sys
import mngr_tmr_lines
mngr_tmr_lines.follow()
ours = sys.modules.pop("sitecustomize")
sys.path[:] = [each for each in sys.path if each != os.path.dirname(__file__)]
try:
    import sitecustomize
except ImportError:
    pass
finally:
    sys.modules.setdefault("sitecustomize", ours)
"""


# measuring


class Places(dict[str, str]):
    """Paths of files in the project, each looked up once; "" for files outside it."""

    def __init__(self, root: str) -> None:
        self._root = root + os.sep

    def __missing__(self, name: str) -> str:
        # Code without a file, such as `<frozen posixpath>`, is not the project's.
        path = "" if name.startswith("<") else os.path.realpath(name)
        mine = path.startswith(self._root) and not any(part in path for part in OUTSIDE)
        self[name] = path[len(self._root) :] if mine else ""
        return self[name]


class ByTrace:
    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: Lines = {}

    def begin(self, test: str) -> None:
        import mechanic_trace  # type: ignore[import-not-found]

        self._seen = {}
        self._tracer = mechanic_trace.Tracer(Places(self._root).__getitem__, self._note)
        self._tracer.start()

    def _note(self, path: str, line: int) -> None:
        self._seen.setdefault(path, set()).add(line)

    def end(self) -> Lines:
        self._tracer.stop()
        return self._seen

    def close(self) -> dict[str, Lines]:
        return {}


class ByCoverage:
    def __init__(self, root: str) -> None:
        import coverage

        omit = [f"*{part}*" for part in OUTSIDE]
        self._root = root + os.sep
        self._coverage: coverage.Coverage = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{self._root}*"], omit=omit, messages=False
        )
        self._coverage.start()

    def begin(self, test: str) -> None:
        self._coverage.switch_context(test)

    def end(self) -> Lines:
        self._coverage.switch_context("")
        return {}  # all lines are reported at the end

    def close(self) -> dict[str, Lines]:
        self._coverage.stop()
        data = self._coverage.get_data()
        found: dict[str, Lines] = {}
        for path in data.measured_files():
            for line, tests in data.contexts_by_lineno(path).items():
                for test in filter(None, tests):
                    inside = path[len(self._root) :] if path.startswith(self._root) else ""
                    found.setdefault(test, {}).setdefault(inside, set()).add(line)
        return found


# programs that a test starts


def follow() -> None:
    """Trace a Python that a test started."""
    import mechanic_trace

    folder = os.environ.get(FOLDER, "")
    if not os.path.isdir(folder):
        return
    with open(os.path.join(folder, "root"), encoding="utf-8") as given:
        root = given.read()
    file = mechanic_trace.opened(os.path.join(folder, str(os.getpid())))
    mechanic_trace.Tracer(
        Places(root).__getitem__, lambda path, line: mechanic_trace.written(file, path, line)
    ).start()


class Follower:
    """Passes the tracer's variables to every program that a test starts, in any environment."""

    def __init__(self, scratch: str, root: str) -> None:
        import subprocess

        self._start = os.path.join(scratch, "start")
        self.folder = os.path.join(scratch, f"test-{os.urandom(6).hex()}")
        os.makedirs(self.folder)
        with open(os.path.join(self.folder, "root"), "w", encoding="utf-8") as file:
            file.write(root)
        self._begin: Callable[..., None] = subprocess.Popen.__init__
        subprocess.Popen.__init__ = self._started()  # type: ignore[method-assign]

    def _started(self) -> Callable[..., None]:
        begin, variables = self._begin, self._variables

        def started(self: object, *args: object, **given: object) -> None:
            env = given.get("env")
            if len(args) <= ENV and (env is None or isinstance(env, dict)):
                given["env"] = variables(os.environ if env is None else env)
            begin(self, *args, **given)

        return started

    def _variables(self, env: Mapping[str, str]) -> dict[str, str]:
        path = filter(None, [self._start, OWN, env.get("PYTHONPATH", "")])
        return {**env, FOLDER: self.folder, "PYTHONPATH": os.pathsep.join(path)}

    def close(self) -> Lines:
        import subprocess

        import mechanic_trace

        subprocess.Popen.__init__ = self._begin  # type: ignore[method-assign]
        found: Lines = {}
        for name in filter(str.isdigit, os.listdir(self.folder)):
            for path, line in mechanic_trace.noted(os.path.join(self.folder, name)):
                found.setdefault(path, set()).add(line)
        return found


# reporting


def ranges(lines: Iterable[int]) -> str:
    """Return line numbers as ranges: 1-3,7."""
    found: list[list[int]] = []
    for line in sorted(lines):
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


class Reach:
    def __init__(self, config: pytest.Config) -> None:
        import tempfile

        self._root = os.path.realpath(config.rootpath)
        self._room = ROOM
        self._scratch = tempfile.mkdtemp()
        os.makedirs(os.path.join(self._scratch, "start"))
        with open(os.path.join(self._scratch, "start", "sitecustomize.py"), "w") as file:
            file.write(START)
        self._measure: ByCoverage | ByTrace
        try:
            self._measure = ByCoverage(self._root)
        except Exception:  # not installed, too old, or another tool measures already
            self._measure = ByTrace(self._root)

    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        follower = Follower(self._scratch, self._root)
        self._measure.begin(item.nodeid)
        try:
            yield
        finally:
            lines = self._measure.end()
            of_programs = follower.close()
        for path, more in of_programs.items():
            lines.setdefault(path, set()).update(more)
        started[item.nodeid] = [os.path.join(self._root, path) for path in of_programs]
        self._tell(item.nodeid, lines)

    def pytest_sessionfinish(self) -> None:
        import shutil

        for test, lines in self._measure.close().items():
            self._tell(test, lines)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _tell(self, test: str, lines: Lines) -> None:
        inside = {path: ranges(found) for path, found in lines.items() if path}
        self._room -= len(test) + sum(len(path) + len(each) + 8 for path, each in inside.items())
        if inside and self._room > 0:
            import mngr_tmr_probe  # type: ignore[import-not-found]

            mngr_tmr_probe.tell({"ran": test, "lines": inside})


started: dict[str, list[str]] = {}
"""The files of the project that ran in programs that a test started."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks here: the Pythons that are traced may have no pytest."""
    import pytest

    pytest.hookimpl(hookwrapper=True, trylast=True)(Reach.pytest_runtest_protocol)
    pytest.hookimpl(tryfirst=True)(Reach.pytest_sessionfinish)
    config.pluginmanager.register(Reach(config), "mngr_tmr_each_line")
