"""Plugins that are copied to where the tests run, and the parser of their reports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def sources(plugins: Iterable[str]) -> dict[str, bytes]:
    """Return the files of these plugins by their names there: `lines` is `mngr_tmr_lines.py`."""
    from mngr_mechanic.program.probe import mechanic_trace

    folder = Path(__file__).parent
    found = {f"mngr_tmr_{each}.py": (folder / f"{each}.py").read_bytes() for each in plugins}
    if "mngr_tmr_lines.py" in found:
        found["mechanic_trace.py"] = Path(mechanic_trace.__file__).read_bytes()
    return found
