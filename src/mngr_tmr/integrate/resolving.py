"""Conflicts between two accepted changes: an agent resolves one at a time, then the gate runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from mngr.api import Mngr, Repo
from mngr.errors import BadRecord, MngrError
from mngr.model.state import ENDED
from mngr_outcome.outcome import parse_outcome
from mngr_tmr.dispatch.agents import request
from mngr_tmr.journal.model import Run
from mngr_tmr.run import prompting
from mngr_tmr.run.pool import Pool
from mngr_tmr.run.settings import ProjectSettings
from mngr_tmr.verify import assertions, patches

TICK = 0.5


class Resolver:
    def __init__(
        self,
        api: Mngr,
        run: Run,
        repo: Repo,
        project: ProjectSettings,
        scratch: Path,
        pool: Pool | None = None,
    ) -> None:
        self._pool = pool or Pool(api, run)
        self._api, self._run, self._repo = api, run, repo
        self._project, self._scratch = project, scratch

    def resolve(self, tree: str, base: str, part: str, paths: Sequence[str]) -> str:
        """Return a tree with both changes, which must still pass the gate, or ""."""
        if self._run.cancelled or not self._run.options.agent_type:
            return ""
        onto = patches.commit(self._repo, tree, [self._run.base], "What is on the branch\n")
        keep = f"refs/mngr/tmr/{self._run.name}/conflicts/{tree[:12]}-{part[:12]}"
        self._repo.git("update-ref", f"{keep}/onto", onto)
        self._repo.git("update-ref", f"{keep}/part", part)
        try:
            head = self._repo.ask("rev-parse", "--verify", "-q", f"{keep}/answer^{{commit}}")
            head = head or self._asked(onto, part, paths, f"{keep}/answer")
        except MngrError:
            return ""
        if not head or self._strays(onto, base, part, head):
            return ""
        return self._repo.line("rev-parse", f"{head}^{{tree}}")

    def _strays(self, onto: str, base: str, part: str, head: str) -> bool:
        """Return whether the answer changes other files than the second change, or loses a test."""
        allowed = {each.path for each in patches.changes(self._repo, base, part)}
        for each in patches.changes(self._repo, onto, head):
            forbidden = patches.odd(each) or self._project.is_forbidden(each.path)
            if each.path not in allowed or forbidden:
                return True
            here, there = (patches.show(self._repo, c, each.path) or "" for c in (onto, head))
            if each.path.endswith(".py") and assertions.removed_tests(here, there):
                return True
        return False

    def _asked(self, onto: str, part: str, paths: Sequence[str], keep: str) -> str:
        """Return the commit of an agent with both changes, and keep it under a ref."""
        name = f"tmr-{self._run.name}-merge-{part[:8]}"
        tests = ", ".join(sorted(self._run.tests)[:5])
        prompt = prompting.integrator(self._run, self._project, part, ", ".join(paths), tests)
        asked = request(self._run, self._pool.address(name), onto, prompt, "conflict", 1)
        asked = asked.replace(labels={"tmr": self._run.name, "role": "integrator"})
        existing = next((each for each in self._api.list() if each.name == name), None)
        if existing is not None:
            self._api.destroy(existing, drop_branch=True)
        agent = self._api.create(asked).agent
        try:
            self._api.deliver(agent, part, cwd=self._run.repository)
            head = self._published(agent.id)
            if not head:
                return ""
            self._api.bring(agent, head, keep, cwd=self._run.repository)
            return head
        finally:
            self._api.destroy(self._api.get(agent), drop_branch=True)
            self._pool.leave(name)

    def _published(self, agent_id: str) -> str:
        deadline = time.monotonic() + self._run.options.agent_timeout
        while time.monotonic() < deadline:
            agent = self._api.list([agent_id])[0]
            if agent.evidence.outcome:
                try:
                    outcome = parse_outcome(agent.evidence.outcome)
                except BadRecord:
                    return ""
                return "" if outcome.blocked else outcome.head
            if agent.state in ENDED:
                return ""
            time.sleep(TICK)
        return ""
