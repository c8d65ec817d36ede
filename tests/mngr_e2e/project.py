"""A third-party project with end-to-end tests, which pytest runs in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

IMPORTS = """import os
from pathlib import Path
import pytest
from mngr_e2e import E2eSession, expect

"""


class Project:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.env: dict[str, str] = {}
        root.mkdir(exist_ok=True)
        if not (root / "pyproject.toml").exists():
            self.settings("")

    @classmethod
    def existing(cls, root: Path, **env: str) -> Project:
        found = cls(root)
        found.env = env
        return found

    def settings(self, text: str) -> None:
        (self.root / "pyproject.toml").write_text(f"[tool.mngr_e2e]\n{textwrap.dedent(text)}")

    def test(self, body: str, name: str = "test_it.py") -> None:
        (self.root / name).write_text(IMPORTS + textwrap.dedent(body))

    def argv(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]

    def environment(self, **env: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if "MNGR_E2E" not in key}
        return {**kept, **self.env, **env}

    def started(self, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.argv(*options),
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
        )

    def pytest(self, *options: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*options),
            cwd=self.root,
            env=self.environment(**env),
            capture_output=True,
            text=True,
            timeout=300,
        )

    @property
    def runs(self) -> list[Path]:
        found = (self.root / ".mngr-e2e").glob("*")
        return sorted(path for path in found if path.is_dir() and not path.is_symlink())

    @property
    def folders(self) -> list[Path]:
        return sorted(path.parent for run in self.runs for path in run.glob("*/result.json"))

    def results(self) -> dict[str, dict[str, Any]]:
        """By node id, without the file's name."""
        found = [json.loads((folder / "result.json").read_text()) for folder in self.folders]
        return {result["node_id"].split("::", 1)[1]: result for result in found}

    def result(self) -> dict[str, Any]:
        (found,) = self.results().values()
        return found

    def transcript(self) -> str:
        (folder,) = self.folders
        return (folder / "transcript.txt").read_text()
