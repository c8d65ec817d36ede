"""Effects that take long, performed by other threads. Each is answered by an event.

Only the thread that asks for them writes the journal and changes the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress

from mngr_tmr.dispatch.effects import Collect, Launch, Remind, Stop, Trial, Verify, Work
from mngr_tmr.dispatch.happenings import Collected, Finished, Launched, OfTask, Tried, Verified
from mngr_tmr.dispatch.roles import Clock, Fleet, Inspector, Order, Trials
from mngr_tmr.journal.model import Ended, Outcome, Ruling, Run, Task, TestRun, Try, Verdict

PATIENCE = (1.0, 5.0)
"""Seconds before a verification that failed is tried again."""


class Background:
    """Work that is due in a step begins with its end, and is answered in a later one."""

    def __init__(
        self,
        executor: Executor,
        run: Run,
        fleet: Fleet,
        inspector: Inspector,
        trials: Trials,
        clock: Clock,
    ) -> None:
        self._executor, self._run, self._clock = executor, run, clock
        self._fleet, self._inspector, self._trials = fleet, inspector, trials
        self._busy: list[Future[OfTask | Tried | None]] = []
        self.due: list[Work] = []

    @property
    def idle(self) -> bool:
        return not (self.due or self._busy)

    def begin(self) -> None:
        """Launches go first: while one waits its slot is idle."""
        for work in sorted(self.due, key=lambda each: not isinstance(each, Launch)):
            self._busy.append(self._executor.submit(self._perform, work))
        self.due.clear()

    def answers(self) -> list[OfTask | Tried]:
        """Of what has been done since the last call."""
        done = {each for each in self._busy if each.done()}
        over = [each.result() for each in self._busy if each in done]
        self._busy = [each for each in self._busy if each not in done]
        return [answer for answer in over if answer is not None]

    def _perform(self, work: Work) -> OfTask | Tried | None:
        if isinstance(work, Trial):
            return Tried(work, self._together(work))
        task = self._run.tasks[work.task]
        each = task.tries[work.number - 1]
        match work:
            case Launch():
                return self._launch(task, each)
            case Remind():
                with suppress(Exception):
                    self._fleet.remind(each.agent_name, work.text)
                return None
            case Collect():
                return self._collect(task, each, work)
            case Stop():
                return Finished(task.id, self._fleet.stop(each, work.ended))
            case Verify():
                return Verified(task.id, self._verify(task, each))

    def _launch(self, task: Task, each: Try) -> OfTask:
        order = Order(task.id, each.number, each.agent_name, task.node_id, task.want, each.base)
        try:
            return Launched(task.id, self._fleet.launch(order))
        except Exception as error:
            return Finished(task.id, Ended(Outcome.LAUNCH_FAILED, _told(error)))

    def _collect(self, task: Task, each: Try, work: Collect) -> OfTask:
        try:
            return Collected(task.id, self._fleet.collect(task, each, work.ending, work.reason))
        except Exception as error:
            told = f"{work.reason}; collecting failed: {_told(error)}"
            published = work.ending is Outcome.UNCHANGED
            return Finished(task.id, Ended(Outcome.NO_RESULT if published else work.ending, told))

    def _verify(self, task: Task, each: Try) -> Verdict:
        """A full disk or a checker that dies is nothing the work did: it is tried again."""
        told = ""
        for patience in (*PATIENCE, 0.0):
            try:
                return self._inspector.verify(task, each)
            except Exception as error:
                told = _told(error)
            self._clock.sleep(patience)
        return Verdict(Ruling.UNDECIDED, f"verification failed {len(PATIENCE) + 1} times: {told}")

    def _together(self, trial: Trial) -> Mapping[str, TestRun]:
        tests = [self._run.tasks[each].node_id for each in trial.tasks]
        with suppress(Exception):  # then nothing is known, and agents find out
            return self._trials.together(trial.fixes, tests)
        return {}


def _told(error: Exception) -> str:
    return " ".join(str(error).split())
