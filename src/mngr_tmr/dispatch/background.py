"""Perform effects that take long in other threads, and answer each with an event.

Only the thread of the conductor writes the journal and changes the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path

from mngr_tmr.dispatch.effects import (
    Collect,
    Finished,
    Launched,
    LaunchTry,
    OfTask,
    Remind,
    Trial,
    Tried,
    Verified,
    Verify,
    Work,
)
from mngr_tmr.dispatch.roles import Fleet, Inspector, Trials
from mngr_tmr.journal.model import Ended, Outcome, Ruling, Run, Task, TestRun, Try, Verdict
from mngr_tmr.run.disk import require_space


class BackgroundWork:
    """Work that is due begins at the end of a step, and is answered in a later step."""

    def __init__(
        self,
        executor: Executor,
        run: Run,
        fleet: Fleet,
        inspector: Inspector,
        trials: Trials,
        folder: Path,
    ) -> None:
        self._places = (folder, run.repository)
        self._executor, self._run = executor, run
        self._fleet, self._inspector, self._trials = fleet, inspector, trials
        self._busy: list[Future[OfTask | Tried | None]] = []
        self.due: list[Work] = []

    @property
    def idle(self) -> bool:
        return not (self.due or self._busy)

    def begin(self) -> None:
        """Begin the due work, launches first: a slot is idle while its launch waits."""
        for work in sorted(self.due, key=lambda each: not isinstance(each, LaunchTry)):
            self._busy.append(self._executor.submit(self._perform, work))
        self.due.clear()

    def answers(self) -> list[OfTask | Tried]:
        """Return the events of the work that has ended since the last call."""
        done = {each for each in self._busy if each.done()}
        over = [each.result() for each in self._busy if each in done]
        self._busy = [each for each in self._busy if each not in done]
        return [answer for answer in over if answer is not None]

    def _perform(self, work: Work) -> OfTask | Tried | None:
        """Return the answer, unless a disk is full: then it may be wrong; `resume` repeats it."""
        answer = self._answer(work)
        require_space(*self._places)
        return answer

    def _answer(self, work: Work) -> OfTask | Tried | None:
        if isinstance(work, Trial):
            return Tried(work, self._together(work))
        task = self._run.tasks[work.task]
        each = task.tries[work.number - 1]
        match work:
            case LaunchTry():
                return self._launch(task, each)
            case Remind():
                with suppress(Exception):
                    self._fleet.remind(each.agent_name, work.text)
                return None
            case Collect():
                return Finished(task.id, self._collect(task, each, work))
            case Verify():
                return Verified(task.id, self._verify(task, each))

    def _launch(self, task: Task, each: Try) -> OfTask:
        try:
            return Launched(task.id, self._fleet.launch(task, each))
        except Exception as error:
            return Finished(task.id, Ended(Outcome.LAUNCH_FAILED, _told(error)))

    def _collect(self, task: Task, each: Try, work: Collect) -> Ended:
        try:
            return self._fleet.collect(task, each, work.ending, work.reason)
        except Exception as error:
            told = f"{work.reason}; collecting failed: {_told(error)}"
            published = work.ending is Outcome.UNCHANGED
            return Ended(Outcome.NO_RESULT if published else work.ending, told)

    def _verify(self, task: Task, each: Try) -> Verdict:
        """Verify an attempt. If a check fails three times by itself, no change is refused."""
        try:
            return self._inspector.verify(task, each)
        except Exception as error:
            return Verdict(Ruling.UNDECIDED, f"verification failed: {_told(error)}")

    def _together(self, trial: Trial) -> Mapping[str, TestRun]:
        tests = [self._run.tasks[each].node_id for each in trial.tasks]
        with suppress(Exception):  # then the results are unknown, and the tests get agents
            return self._trials.together(trial.fixes, tests)
        return {}


def _told(error: Exception) -> str:
    return " ".join(str(error).split())
