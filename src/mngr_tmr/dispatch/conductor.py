"""Dispatch and gather: keep the slots full, and perform the effects that each task requests.

Every event is journalled before its effects. A new conductor with the same journal continues where
a killed one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor

from mngr.model.struct import Json
from mngr_tmr.dispatch import canaries, life, orders, trials
from mngr_tmr.dispatch.alerts import Stall
from mngr_tmr.dispatch.background import BackgroundWork
from mngr_tmr.dispatch.effects import (
    Cancelled,
    Effect,
    Go,
    OfTask,
    Sighted,
    Slow,
    Tried,
    Verified,
    Write,
)
from mngr_tmr.dispatch.life import Stage
from mngr_tmr.dispatch.roles import Clock, Fleet, Inbox, Inspector, Trials
from mngr_tmr.dispatch.throttle import Throttle, over_budget
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.journal import Journal
from mngr_tmr.journal.model import Outcome, Run

REST = 4.0
"""Pause between two looks, as a multiple of the time that a look takes."""
LONGEST_REST = 10.0
"""Maximum pause: if a host does not answer, a look takes long without using the CPU."""
SPARE = 4
"""Number of slots per agent that may be collected without a slot once it has published."""


class Conductor:
    def __init__(
        self,
        run: Run,
        journal: Journal,
        fleet: Fleet,
        inspector: Inspector,
        tests: Trials,
        clock: Clock,
        executor: Executor,
        inbox: Inbox | None = None,
        *,
        launches: bool = True,
    ) -> None:
        """Without `launches`, only collected work is verified."""
        self.run, self.journal, self.fleet, self.clock = run, journal, fleet, clock
        self._inbox, self._launches = inbox, launches
        self._stages: dict[str, Stage] = {}
        self._tasks: dict[Stage, dict[str, None]] = {stage: {} for stage in Stage}
        """The tasks in each stage, in the order in which they entered it."""
        self._looked = self._rest = 0.0
        self._background = BackgroundWork(executor, run, fleet, inspector, tests, journal.folder)
        self._stall = Stall(run, clock)
        self._throttle = Throttle(run, self.note, clock)
        self._untried = bool(trials.fixes(run))
        self._trying = False
        self._adopt()

    def _adopt(self) -> None:
        """Put each task into the stage that the journal implies."""
        for task in self.run.tasks.values():
            stage, effects = life.standing(self.run, task)
            if self._launches or stage is Stage.VERIFYING:
                self._enter(task.id, stage, effects)
        self._settle_canaries()

    def _enter(self, task_id: str, stage: Stage, effects: Iterable[Effect] = ()) -> None:
        before = self._stages.pop(task_id, Stage.OVER)
        self._tasks[before].pop(task_id, None)
        if stage is not Stage.OVER and (self._launches or stage is not Stage.READY):
            self._stages[task_id] = stage
            self._tasks[stage][task_id] = None
        self._perform(effects)

    @property
    def finished(self) -> bool:
        return not self._stages and self._background.idle

    @property
    def _agentless(self) -> list[str]:
        return [*self._tasks[Stage.READY], *self._waiting]

    @property
    def _waiting(self) -> list[str]:
        groups = canaries.groups(self.run, self._tasks[Stage.WAITING])
        return [each for group in groups.values() for each in group]

    # the loop

    def conduct(self, tick: float, watch: Callable[[Run], None] = lambda run: None) -> None:
        """Perform a step every `tick` seconds until the run is finished."""
        while not self.finished:
            self.step()
            watch(self.run)
            if not self.finished:
                self.clock.sleep(tick)

    def step(self) -> None:
        self._obey()
        for answer in self._background.answers():
            self._hear(answer)
        self._look()
        self._throttle.adapt()
        self._try_fixes()
        self._settle_canaries()
        self._release_all()
        self._fill_slots()
        self._tell_stall()
        # One sync for all events of a step: with many agents the disk is the bottleneck.
        if self._background.due:
            self.journal.sync()
        self._background.begin()

    def note(self, type: str, fields: Mapping[str, Json]) -> None:
        """Journal an event. It is synced with all others of its step, before any work begins."""
        self._stall.stirred()
        apply(self.run, self.journal.append(type, fields, sync=False))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Write():
                    self.note(effect.type, effect.fields)
                    for task_id in effect.moves:
                        self._enter(task_id, *life.standing(self.run, self.run.tasks[task_id]))
                case Slow():
                    self._throttle.overloaded()
                case _:
                    self._background.due.append(effect)

    def _hear(self, event: OfTask | Tried) -> None:
        if isinstance(event, Tried):
            self._tried(event)
            return
        self._enter(event.task, *life.advance(self.run, self._stages[event.task], event))
        if isinstance(event, Verified) and self.run.tasks[event.task].fix:
            self._untried = True

    def _obey(self) -> None:
        if self._inbox is not None:
            orders.obey(self.run, self.note, self.journal.sync, self._inbox)
        if self.run.cancelled:  # at every step: a launch may have been in progress
            for task_id in self._agentless:
                self._enter(task_id, Stage.OVER)
            for task_id in [*self._tasks[Stage.WORKING]]:
                self._hear(Cancelled(task_id))

    def _look(self) -> None:
        """Look at all agents in one reading, less often if it takes long."""
        tries = {each: self.run.tasks[each].tries[-1] for each in self._tasks[Stage.WORKING]}
        began = self.clock.now()
        if not tries or 0 <= began - self._looked < self._rest:  # negative: the clock was set back
            return
        seen = self.fleet.look([*tries.values()])
        self._looked = now = self.clock.now()
        self._rest = min(REST * (now - began), LONGEST_REST)
        for task_id, each in tries.items():
            self._hear(Sighted(task_id, seen.get(each.agent_name), now))

    # tests that wait for the fix of another

    @property
    def _under_trial(self) -> bool:
        """Return whether a fix was accepted and it is not known yet which tests pass with it."""
        return self._untried or self._trying

    def _try_fixes(self) -> None:
        """Try the tests without an agent once for each accepted fix."""
        if not self._untried or self._trying or self.run.cancelled:
            return
        self._untried = False
        trial = trials.trial(self.run, self._agentless)
        if trial is not None:
            self._trying = True
            self._perform([trial])

    def _tried(self, event: Tried) -> None:
        self._trying = False
        self._perform(trials.spared(self.run, event, self._agentless))
        groups = canaries.groups(self.run, self._tasks[Stage.WAITING])
        for fix in event.trial.fixes:
            waiting = groups.get(fix.task, ())
            self._perform(canaries.regroup(self.run, waiting, event.results, fix.commit))

    def _settle_canaries(self) -> None:
        groups = canaries.groups(self.run, self._tasks[Stage.WAITING])
        for canary, waiting in groups.items():
            under_trial = self._under_trial
            self._perform(canaries.answer(self.run, canary, waiting, under_trial=under_trial))

    def _release_all(self) -> None:
        """Release tasks that wait for each other, which only a damaged journal can contain."""
        if self._background.idle and {*self._stages.values()} == {Stage.WAITING}:
            for task_id in self._waiting:
                self._enter(task_id, Stage.READY)

    # launching

    def _fill_slots(self) -> None:
        while self._throttle.has_room(self._slots_in_use):
            task_id = self._next()
            if not task_id:
                return
            over = over_budget(self.run, self.clock.now())
            if over:
                self._give_up(over)
                return
            if not self._throttle.may_launch():
                return
            self._hear(Go(task_id))

    @property
    def _slots_in_use(self) -> int:
        ending = [self.run.tasks[each] for each in self._tasks[Stage.COLLECTING]]
        kept = sum(life.keeps_slot(self.run, task) for task in ending)
        # If collecting is slow, agents that have published would pile up, each with its memory.
        late = max(0, len(ending) - kept - max(1, self.run.slots // SPARE))
        return len(self._tasks[Stage.LAUNCHING]) + len(self._tasks[Stage.WORKING]) + kept + late

    def _next(self) -> str:
        """Return the next task to launch. While a fix is tried, tests that it may fix are held."""
        held = self._under_trial
        ready = self._tasks[Stage.READY]
        return next((e for e in ready if not (held and trials.is_broken(self.run, e))), "")

    def _give_up(self, reason: str) -> None:
        for task_id in self._agentless:
            fields = {
                "task": task_id,
                "reason": f"over budget: {reason}",
                "as": str(Outcome.OVER_BUDGET),
            }
            self._perform([Write("skipped", fields, moves=(task_id,))])

    def _tell_stall(self) -> None:
        if not self._background.idle:
            return
        text = self._stall.told([*self._tasks[Stage.WORKING]], self._waiting)
        if text:
            self.note("waiting", {"text": text})
