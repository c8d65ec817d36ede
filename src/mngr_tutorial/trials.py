"""Run commands in a temporary home and directory, with a temporary home of mngr.

They run as in an end-to-end test of the project: with its `[tool.mngr_e2e]` settings and a small
environment, and all their processes are ended afterwards.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mngr.errors import MngrError
from mngr_e2e import settings
from mngr_e2e.artifacts import TestRecord
from mngr_e2e.commands.results import CommandResult
from mngr_e2e.environment import Directories, environment
from mngr_e2e.session import E2eSession, SetupFailed
from mngr_tutorial.proposals import Proposal

SHOWN = 4_000
"""Number of characters at the end of a trial's output that are kept."""


class Throwaway:
    """`with Throwaway(root) as world:` gives an E2eSession without a test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __enter__(self) -> Throwaway:
        self.base = Path(tempfile.mkdtemp(prefix="mngr-tutorial-"))
        self.session = self._open(settings.load(self.root))
        return self

    def run(
        self, command: str, timeout: float, cwd: Path | None = None, **env: str
    ) -> CommandResult:
        return self.session.run(command, timeout=timeout, cwd=cwd, env=env)

    def output(self, done: CommandResult) -> str:
        """Return the end of both streams, in order of arrival, without secrets."""
        text = b"".join(chunk.data for chunk in done.chunks).decode("utf-8", "replace")
        text = self.session.redactor(text)
        return text if len(text) <= SHOWN else f"…{text[-SHOWN:]}"

    def _open(self, chosen: settings.Settings) -> E2eSession:
        base = self.base
        place = Directories(self.root, base / "home", base / "work", base / "artifacts")
        env = {"MNGR_HOST_DIR": str(base / "mngr")} | environment(chosen, place.make())
        # Find the project's own programs, even if mngr is installed elsewhere.
        env["PATH"] = f"{self.root / '.venv' / 'bin'}{os.pathsep}{env['PATH']}"
        return E2eSession(place, chosen, TestRecord("trial", ""), env)

    def __exit__(self, *_: object) -> None:
        try:
            self.session.close()
            self.session.finish()
        finally:
            shutil.rmtree(self.base, ignore_errors=True)


@dataclass(frozen=True)
class ProposalResult:
    """The result of running a proposal."""

    proposal: Proposal
    exit_code: int
    seconds: float
    output: str
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        return self.exit_code == 0


def attempt(root: Path, proposal: Proposal, timeout: float) -> ProposalResult:
    """Run its setup, then its commands, in a shell that stops at the first failure."""
    with Throwaway(root) as world:
        try:
            world.session.prepare()
        except SetupFailed as error:
            raise MngrError(str(error)) from None
        done = _run(world, proposal, timeout)
        shown = world.output(done)
    return ProposalResult(proposal, done.exit_code, round(done.seconds, 3), shown, done.timed_out)


def _run(world: Throwaway, proposal: Proposal, timeout: float) -> CommandResult:
    if proposal.setup:
        done = world.run(f"set -e\n{proposal.setup}", timeout)
        if done.exit_code:
            return done
    return world.run(f"set -e\n{proposal.commands}", timeout)
