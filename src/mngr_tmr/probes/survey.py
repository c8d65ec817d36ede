"""A pytest plugin that reports where its interpreter is and which modules are installed there.

It is copied to the host like the probe and runs once, in an empty directory and outside any
sandbox: what it finds must be readable in the sandbox. Modules of $MNGR_TMR_REPOSITORY do not
count.
"""

from __future__ import annotations

import json
import os
import pkgutil
import sys
from importlib import metadata

MARK = "mngr-survey "


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def _places() -> list[str]:
    """Return the folders of Python and of what it imports."""
    program = os.path.dirname(os.path.realpath(sys.executable))
    found = [sys.prefix, sys.base_prefix, sys.exec_prefix, program, *sys.path]
    here = (os.path.dirname(os.path.abspath(__file__)), os.getcwd())
    return sorted({os.path.abspath(p) for p in found if os.path.exists(p)} - {"/", *here})


def _installed(repository: str, places: list[str]) -> set[str]:
    outside = [p for p in places if not _within(p, repository) or _within(p, sys.prefix)]
    found = {module.name for module in pkgutil.iter_modules(outside)}
    return found | set(sys.stdlib_module_names)


def _of_project(repository: str) -> set[str]:
    """Return the modules of distributions that were installed from the repository."""
    names: set[str] = set()
    for each in metadata.distributions():
        if f'file://{repository}"' in (each.read_text("direct_url.json") or ""):
            names |= {path.parts[0].partition(".")[0] for path in each.files or ()}
    return names


def survey(repository: str) -> dict[str, object]:
    places = _places()
    names = _installed(repository, places) - _of_project(repository)
    prefix = os.path.abspath(sys.prefix)
    return {"places": places, "prefix": prefix, "modules": sorted(names)}


if "MNGR_TMR_REPOSITORY" in os.environ:
    told = MARK + json.dumps(survey(os.environ["MNGR_TMR_REPOSITORY"]))
    sys.stdout.write(f"\n{told}\n")
    sys.stdout.flush()
    os._exit(0)  # no test is run
