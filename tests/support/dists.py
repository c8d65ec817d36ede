"""Installed distributions, as pip leaves them: a dist-info folder beside the modules."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path


def install(
    site: Path,
    name: str,
    entry_points: str,
    version: str = "1.0",
    modules: dict[str, str] | None = None,
) -> Path:
    """`entry_points` is the text of the file; `modules` maps names to sources."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nName: of the description\n"
    )
    (folder / "entry_points.txt").write_text(entry_points)
    for module, source in (modules or {}).items():
        (site / f"{module}.py").write_text(source)
    return folder


def remove(folder: Path) -> None:
    shutil.rmtree(folder)


def settle(site: Path, seconds: float = 60) -> None:
    """Make the folder look as if it had not changed for a while."""
    then = time.time() - seconds
    os.utime(site, (then, then))
