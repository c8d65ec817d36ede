"""Fixtures: the jot of this directory as a command, and a home with some notes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mngr_e2e import E2eSession, expect

LAUNCHER = """#!{python}
import sys
sys.path.insert(0, {source!r})
from jot.cli import main
sys.exit(main())
"""

NOTES = """
{"day": "2026-02-28", "text": "buy oat milk", "tags": ["shop"]}
{"day": "2026-03-01", "text": "call the plumber", "tags": ["home"]}
{"day": "2026-03-31", "text": "prune the apple tree", "tags": ["home", "garden"]}
{"day": "2026-04-02", "text": "plan the summer"}
"""


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bin") / "jot"
    source = Path(__file__).parents[1] / "src"
    path.write_text(LAUNCHER.format(python=sys.executable, source=str(source)))
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def jot_on_path(e2e: E2eSession, launcher: Path) -> None:
    """Put the jot of this checkout on PATH, even if another one is installed."""
    e2e.env["PATH"] = f"{launcher.parent}{os.pathsep}{e2e.env['PATH']}"


@pytest.fixture
def notes(e2e: E2eSession) -> None:
    """Add four notes, before, in and after one March."""
    result = e2e.run("jot import -", comment="four notes to begin with", stdin=NOTES)
    expect(result).to_succeed()
