"""Run the meter of an agent type on files, as on a host."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mngr.agents.base import KINDS, AgentType, Tokens


def run(kind: AgentType, folder: Path, *agents: str) -> list[list[str]]:
    """The lines that the meter prints about the agents in a folder, as words."""
    argv = ["sh", "-c", kind.meter(), "sh", *agents]
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=20)
    assert not done.stderr, done.stderr
    return [line.split(" ") for line in done.stdout.splitlines()]


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def used(kind: AgentType, files: Mapping[str, bytes]) -> dict[str, Tokens]:
    """The tokens by model of an agent with these files."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "fox", files)
        (Path(folder) / "hen").mkdir()
        rows = run(kind, Path(folder), "hen", "fox")
    assert all(row[0] == "fox" for row in rows)
    return {
        model: Tokens(**dict(zip(KINDS, map(int, counts), strict=True)))
        for _, model, *counts in rows
    }
