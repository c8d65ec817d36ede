"""A coverage file for each test, so that it is known which code of a Python CLI a test reaches."""

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
# Where the CLI's interpreter has no coverage.py it runs as ever.
STARTUP = """try:
    import coverage
except ImportError:
    pass
else:
    coverage.process_startup()
"""


def measures(settings: Settings) -> bool:
    return switches.is_on(switches.COVERAGE) and bool(settings.coverage)


def variables(settings: Settings, env: Mapping[str, str], run: Path, test: Path) -> dict[str, str]:
    """For the environment of the test's commands. The file is named even when we do not measure:
    a CLI that measures itself must not mix the tests up."""
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
    """In parallel: the processes of one test each write their own, also when told to end."""
    names = "".join(f"\n    {source}" for source in sources)
    return f"[run]\nparallel = true\nsigterm = true\nsource ={names}\n"


def combine(settings: Settings, test: Path) -> None:
    """One file of all that the test's processes measured."""
    parts = [str(path) for path in test.glob(f"{FILE}.*")] if measures(settings) else []
    if not parts:
        return
    try:
        import coverage
    except ImportError:  # the CLI's interpreter has it and ours has not: the parts stay
        return
    whole = coverage.Coverage(data_file=str(test / FILE), config_file=False)
    with warnings.catch_warnings(), suppress(coverage.CoverageException):
        warnings.simplefilter("ignore")  # a process that was killed may have left half of a file
        whole.combine(parts, strict=True)
        whole.save()
