"""A repository with something to repair in it, and the mechanic's program at work there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from mngr_mechanic import archive
from mngr_outcome.outcome import Published, parse_outcome
from mngr_outcome.publish import scripts
from tests.support import plugins

BUDGET = "300"
"""Seconds. On an idle machine a tenth is enough; what is tested is not the machine."""


@dataclass
class Garage:
    root: Path
    """The project, a git repository."""
    state: Path
    output: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.state.mkdir(exist_ok=True)
        (self.state / archive.NAME).write_bytes(archive.build())
        for name, content in scripts().items():
            (self.state / name).write_bytes(content)
            (self.state / name).chmod(0o700)
        if not (self.root / ".git").exists():
            self.git("init", "--quiet")
            self.git("add", "--all")
            self.git("commit", "--quiet", "--message", "as it was")
        self.before = self.git("rev-parse", "HEAD")

    @property
    def env(self) -> dict[str, str]:
        hidden = ("PYTEST_", "MNGR_", "COV_", "GIT_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "PYTEST_ADDOPTS": " ".join(plugins.OPTIONS),
            "MNGR_AGENT_STATE_DIR": str(self.state),
            "MNGR_AGENT_WORK_DIR": str(self.root),
            "MNGR_TMR_TASK": "the task",
            "MNGR_TMR_TRY": "2",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_NAME": "Tester" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "t@example.com" for role in ("AUTHOR", "COMMITTER")},
        }

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args], cwd=self.root, env=self.env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def argv(self, *words: str) -> list[str]:
        program = [sys.executable, str(self.state / archive.NAME)]
        return [*program, "--jobs", "1", *words]

    def work(self, *words: str, budget: str = BUDGET) -> Published:
        done = subprocess.run(
            self.argv("--budget", budget, *words),
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
        )
        self.output = done.stdout + done.stderr
        assert done.returncode == 0, self.output
        return self.outcome()

    def outcome(self) -> Published:
        outcome = parse_outcome((self.state / "outcome.json").read_bytes())
        assert outcome.head == self.git("rev-parse", "HEAD")
        assert (outcome.task, outcome.try_number) == ("the task", 2)
        assert self.git("status", "--porcelain") == ""
        return outcome

    def changed(self) -> list[str]:
        """Files that its commits touched."""
        return self.git("diff", "--name-only", self.before, "HEAD").split()

    def diff(self) -> list[str]:
        lines = self.git("diff", "--unified=0", self.before, "HEAD").split("\n")
        return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]

    def passing(self, *tests: str, **env: str) -> bool:
        """With a pytest that has nothing to do with the mechanic."""
        own = self.root / ".venv" / "bin" / "python"
        words = [
            str(own if own.exists() else sys.executable),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        hidden = ("MNGR_AGENT", "MNGR_TMR")
        clean = {key: value for key, value in self.env.items() if not key.startswith(hidden)}
        done = subprocess.run(words, cwd=self.root, env=clean | env, capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stdout
        return done.returncode == 0
