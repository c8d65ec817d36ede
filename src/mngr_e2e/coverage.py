"""A coverage file for each test, so that it is known which code of a Python CLI a test reaches."""

from __future__ import annotations

import os
from pathlib import Path

from mngr_e2e.artifacts import write_whole
from mngr_e2e.settings import Settings

SWITCH = "MNGR_E2E_COVERAGE"
# Where the CLI's interpreter has no coverage.py it runs as ever.
STARTUP = """try:
    import coverage
except ImportError:
    pass
else:
    coverage.process_startup()
"""


def variables(settings: Settings, run: Path, test: Path) -> dict[str, str]:
    """For the environment of the test's commands. The file is named even when we do not measure:
    a CLI that measures itself must not mix the tests up."""
    named = {"COVERAGE_FILE": str(test / "coverage")}
    if os.environ.get(SWITCH, "") in ("", "0") or not settings.coverage:
        return named
    write_whole(run / "coveragerc", _rc(settings.coverage))
    startup = run / "startup"
    startup.mkdir(exist_ok=True)
    write_whole(startup / "sitecustomize.py", STARTUP)
    path = os.pathsep.join(filter(None, [str(startup), settings.env.get("PYTHONPATH", "")]))
    return {**named, "COVERAGE_PROCESS_START": str(run / "coveragerc"), "PYTHONPATH": path}


def _rc(sources: list[str]) -> str:
    """In parallel: the processes of one test each write their own."""
    names = "".join(f"\n    {source}" for source in sources)
    return f"[run]\nparallel = true\nsource ={names}\n"
