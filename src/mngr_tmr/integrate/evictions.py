"""Who evicts: a change that does not get onto the branch is recorded here, with its reason."""

from __future__ import annotations

from collections.abc import Iterable

from mngr.api import Repo
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch.roles import Note
from mngr_tmr.journal.model import Eviction, Run


class Evictions:
    def __init__(self, run: Run, repo: Repo, note: Note) -> None:
        self._run, self._repo, self._note = run, repo, note
        self._known: set[tuple[str, str]] = set()

    def __contains__(self, evicted: tuple[str, str]) -> bool:
        """Whether this part of a task's change was evicted: (task, part)."""
        return evicted in self._known

    def evict(
        self, tasks: Iterable[str], part: str, reason: str, commit: str, *, needless: bool = False
    ) -> None:
        """Journal the eviction of a change of these tasks, and keep its commit as a ref."""
        for task_id in tasks:
            if (task_id, part) not in self._known:
                self._known.add((task_id, part))
                ref = f"refs/mngr/tmr/{self._run.name}/evicted/{task_id}/{part}"
                self._repo.git("update-ref", ref, commit)
                eviction = Eviction(task_id, part, reason, ref, needless)
                self._note("evicted", {"eviction": to_json(eviction)})
