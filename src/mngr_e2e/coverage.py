"""Write a coverage file per test: which code of a Python program the test executes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from mngr_e2e import switches
from mngr_e2e.artifacts import write_whole
from mngr_e2e.settings import Settings

FILE = "coverage"
# An interpreter without coverage.py runs as usual. This file hides another sitecustomize.py, so it
# imports that one, as Python would have done.
STARTUP = """import os, sys
try:
    import coverage
except ImportError:
    pass
else:
    coverage.process_startup()
ours = sys.modules.pop("sitecustomize")
sys.path[:] = [each for each in sys.path if each != os.path.dirname(__file__)]
try:
    import sitecustomize
except ImportError as error:
    if error.name != "sitecustomize":
        raise
finally:
    sys.modules.setdefault("sitecustomize", ours)
"""


def measures(settings: Settings) -> bool:
    return switches.is_on(switches.COVERAGE) and bool(settings.coverage)


def variables(settings: Settings, env: Mapping[str, str], run: Path, test: Path) -> dict[str, str]:
    """Return variables for a test's commands.

    The coverage file is named even if nothing is measured, for programs that measure themselves.
    """
    named = {"COVERAGE_FILE": str(test / FILE)}
    if not measures(settings):
        return named
    write_whole(run / "coveragerc", _rc(settings.coverage))
    startup = run / "startup"
    startup.mkdir(exist_ok=True)
    write_whole(startup / "sitecustomize.py", STARTUP)
    path = os.pathsep.join(filter(None, [str(startup), env.get("PYTHONPATH")]))
    return {**named, "COVERAGE_PROCESS_START": str(run / "coveragerc"), "PYTHONPATH": path}


def _rc(sources: list[str]) -> str:
    """Return the configuration: each process writes its own file, also at SIGTERM."""
    names = "".join(f"\n    {source}" for source in sources)
    return f"[run]\nparallel = true\nsigterm = true\nsource ={names}\n"


def combine(settings: Settings, test: Path) -> None:
    """Combine the files of a test's processes into one."""
    parts = [str(path) for path in test.glob(f"{FILE}.*")] if measures(settings) else []
    if not parts:
        return
    try:
        import coverage
    except ImportError:  # only the program's interpreter has coverage.py, so the parts are kept
        return
    whole = coverage.Coverage(data_file=str(test / FILE), config_file=False)
    with warnings.catch_warnings(), suppress(coverage.CoverageException):
        warnings.simplefilter("ignore")  # a process that was killed may leave an incomplete file
        whole.combine(parts, strict=True)
        whole.save()
