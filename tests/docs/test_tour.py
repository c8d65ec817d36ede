"""`make tour` is the first thing a newcomer sees."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.cli import ROOT


def test_the_tour_runs_to_its_end_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [str(ROOT / "scripts" / "tour.sh")],
        env={
            "PATH": f"{ROOT}/.venv/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    for line in (
        "counter DONE exit code 0",
        "clerk: delivered",
        "broken ended with 3",
        "Restored clerk",
    ):
        assert line in done.stdout
    assert not list(tmp_path.iterdir())
    assert not any(str(tmp_path) in command for command in command_lines())


def command_lines() -> Iterator[str]:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield os.fsdecode(entry.read_bytes())
        except OSError:
            continue  # it has ended
