"""Dispatch and gather: keep the slots full, look, remind, collect, verify, until all is said.

Everything that happens is an event first. The conductor holds no truth of its own: a new one,
made from the same journal, goes on where a killed one was.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress

from mngr.model.struct import Json
from mngr_tmr.dispatch import judging, orders, retrying
from mngr_tmr.dispatch.background import Background, Effect, Rank
from mngr_tmr.dispatch.canaries import Canaries
from mngr_tmr.dispatch.judging import Step
from mngr_tmr.dispatch.roles import Clock, Fleet, Inbox, Inspector, Order, Trials
from mngr_tmr.dispatch.sparing import Sparing
from mngr_tmr.dispatch.stalling import Stall
from mngr_tmr.dispatch.throttle import Throttle
from mngr_tmr.journal.codec import to_json
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.journal import Journal
from mngr_tmr.journal.model import ANSWERS, Ended, Outcome, Ruling, Run, Task, Try, Verdict

REST = 4.0
"""Between two looks, at least so many times as long as one took."""
PATIENCE = (1.0, 5.0)
"""Seconds before a verification that failed is tried again."""
CANCELLED = Ended(Outcome.CANCELLED, "the run was cancelled")
NUDGE = "The service was overloaded. Go on with your task; end by publishing your outcome."


def agent_name(run: Run, task: Task, number: int) -> str:
    return f"tmr-{run.name}-{task.id}-{number}"


class Conductor:
    def __init__(
        self,
        run: Run,
        journal: Journal,
        fleet: Fleet,
        inspector: Inspector,
        trials: Trials,
        clock: Clock,
        executor: Executor,
        inbox: Inbox | None = None,
        *,
        launches: bool = True,
    ) -> None:
        """Without `launches` only what agents have left is verified."""
        self.run, self.journal = run, journal
        self.fleet, self.inspector, self.clock = fleet, inspector, clock
        self._inbox, self._launches = inbox, launches
        self._ready: deque[str] = deque()
        self._active: dict[str, Try] = {}
        self._look_took = 0.0
        self._background = Background(executor)
        self._stall = Stall(run, clock)
        self._throttle = Throttle(run, self.note, clock)
        self._canaries = Canaries(run, self.note, self._ready.append)
        self._sparing = Sparing(
            run, self.note, trials, self._background, self._canaries, self._ready
        )
        self._alike = Counter(
            _kind(each.ended)
            for task in run.tasks.values()
            for each in task.tries
            if each.ended is not None and each.ended.outcome not in ANSWERS
        )
        self._adopt()

    # where things stand

    def _adopt(self) -> None:
        """From the journal alone: what waits, what runs, what was interrupted half-way."""
        for task in self.run.tasks.values():
            latest = task.current
            if not retrying.is_open(self.run, task):
                continue
            if not self._launches and (latest is None or latest.ended is None or latest.verdict):
                continue
            if latest is None and task.canary:
                self._canaries.wait(task)
            elif latest is None or retrying.wants_retry(self.run, task, latest):
                self._ready.append(task.id)
            elif latest.ended is not None:
                self._verify(task, latest)
            elif latest.ending is not None or self.run.cancelled:
                ending = latest.ending or CANCELLED
                self._collect(task, latest, ending.outcome, ending.reason)
            elif not latest.launched:
                self._launch(task, latest)
            else:
                self._active[task.id] = latest
        self._canaries.settle(under_trial=self._sparing.pending)

    @property
    def finished(self) -> bool:
        return not (self._ready or self._under_way or self._canaries.waiting)

    @property
    def _under_way(self) -> bool:
        return bool(self._active) or not self._background.idle

    # the loop

    def conduct(self, tick: float, watch: Callable[[Run], None] = lambda run: None) -> None:
        """A step every `tick`, or less often where looking takes long: a far host, many agents."""
        while not self.finished:
            self.step()
            watch(self.run)
            if not self.finished:
                self.clock.sleep(max(tick, REST * self._look_took))

    def step(self) -> None:
        self._obey()
        self._background.finish()
        if self._active:
            self._look()
        self._throttle.adapt()
        self._sparing.begin()
        self._canaries.settle(under_trial=self._sparing.pending)
        if not (self._ready or self._under_way):
            self._canaries.release_all()
        self._fill_slots()
        self._tell_stall()
        # One sync for all that a step announced: with many agents it is the disk that is slow.
        if self._background.is_due:
            self.journal.sync()
        self._background.begin()

    def note(self, type: str, fields: Mapping[str, Json]) -> None:
        """On the disk, with all others of this step, before anything that follows from it."""
        self._stall.stirred()
        apply(self.run, self.journal.append(type, fields, sync=False))

    def _note_try(self, type: str, task: Task, each: Try, **fields: Json) -> None:
        self.note(type, {"task": task.id, "try": each.number, **fields})

    def _obey(self) -> None:
        if self._inbox is not None:
            orders.obey(self.run, self.note, self.journal.sync, self._inbox)
        if self.run.cancelled:  # at every step: a launch may have been under way
            self._cancel()

    def _cancel(self) -> None:
        self._ready.clear()
        self._canaries.clear()
        for task_id, each in list(self._active.items()):
            self._collect(self.run.tasks[task_id], each, CANCELLED.outcome, CANCELLED.reason)

    # launching

    def _fill_slots(self) -> None:
        while self._throttle.has_room(len(self._active) + self._background.slots):
            task_id = self._next()
            if not task_id:
                return
            over = self._throttle.over_budget()
            if over:
                self._give_up(over)
                return
            if not self._throttle.may_launch():
                return
            self._ready.remove(task_id)
            self._intend(self.run.tasks[task_id])

    def _next(self) -> str:
        """While a fix is tried, no agent is launched that may not be needed."""
        held = self._sparing.pending
        fits = (each for each in self._ready if not (held and self._sparing.is_broken(each)))
        return next(fits, "")

    def _tell_stall(self) -> None:
        busy = not self._background.idle
        text = "" if busy else self._stall.told([*self._active], self._canaries.waiting)
        if text:
            self.note("waiting", {"text": text})

    def _intend(self, task: Task) -> None:
        number = len(task.tries) + 1
        name, base = agent_name(self.run, task, number), task.base or self.run.base
        self.note(
            "try_intended",
            {"task": task.id, "try": number, "agent_name": name, "base": base},
        )
        assert task.latest is not None
        self._launch(task, task.latest)

    def _launch(self, task: Task, each: Try) -> None:
        order = Order(task.id, each.number, each.agent_name, task.node_id, task.want, each.base)

        def work() -> Effect:
            try:
                agent_id = self.fleet.launch(order)
            except Exception as error:
                ended = Ended(Outcome.LAUNCH_FAILED, _told(error))
                return lambda: self._end(task, each, ended)
            return lambda: self._launched(task, each, agent_id)

        self._background.submit(work, slot=True, rank=Rank.LAUNCH)

    def _launched(self, task: Task, each: Try, agent_id: str) -> None:
        self._note_try("try_launched", task, each, agent_id=agent_id)
        self._active[task.id] = each

    def _give_up(self, reason: str) -> None:
        for task_id in [*self._ready, *self._canaries.waiting]:
            self.note("skipped", {"task": task_id, "reason": f"over budget: {reason}"})
        self._ready.clear()
        self._canaries.clear()

    # looking

    def _look(self) -> None:
        began = self.clock.now()
        seen = self.fleet.look(list(self._active.values()))
        now = self.clock.now()
        self._look_took = now - began
        for task_id, each in list(self._active.items()):
            step = judging.judge(each, seen.get(each.agent_name), now, self.run.options)
            self._act(self.run.tasks[task_id], each, step)

    def _act(self, task: Task, each: Try, step: Step) -> None:
        if step.kind == "end":
            if step.outcome is Outcome.QUOTA:  # before more is launched into the same wall
                self._throttle.exhausted(step.text)
            self._collect(task, each, step.outcome, step.text)
        elif step.kind in ("remind", "throttle"):
            if step.kind == "throttle":
                self._throttle.overloaded()
            self._note_try("reminded", task, each, text=step.text)
            self._remind(each, NUDGE if step.kind == "throttle" else step.text)

    def _remind(self, each: Try, text: str) -> None:
        """Delivery takes seconds, and may fail: what became of the agent, the next look shows."""

        def work() -> Effect:
            with suppress(Exception):
                self.fleet.remind(each.agent_name, text)
            return lambda: None

        self._background.submit(work, slot=False)

    # collecting and verifying

    def _collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> None:
        """What it is judged to be is written down first: once stopped, it looks like any other."""
        self._active.pop(task.id, None)
        if each.ending is None:
            self._note_try("gathering", task, each, outcome=str(outcome), reason=reason)

        def work() -> Effect:
            try:
                ended = self.fleet.collect(task, each, outcome, reason)
            except Exception as error:
                told = f"{reason}; collecting failed: {_told(error)}"
                ended = Ended(Outcome.NO_RESULT if outcome is Outcome.UNCHANGED else outcome, told)
            return lambda: self._end(task, each, ended)

        self._background.submit(work, slot=self._keeps_slot(outcome))

    def _keeps_slot(self, outcome: Outcome) -> bool:
        """One that has published works no more; but what it spent is known only once it is home."""
        limits = self.run.options.run_budget
        metered = limits.tokens is not None or limits.cost is not None
        return metered or outcome is not Outcome.UNCHANGED

    def _end(self, task: Task, each: Try, ended: Ended) -> None:
        unpriced = {*ended.spent.unpriced} - {*self.run.spent.unpriced}
        self._note_try("try_ended", task, each, ended=to_json(ended))
        if unpriced and self.run.options.run_budget.cost is not None:
            told = f"no price is known for {', '.join(sorted(unpriced))}"
            self.note("alert", {"text": f"{told}: counted as the dearest model of its vendor"})
        self._raise_alert(ended)
        if retrying.needs_verdict(ended):
            self._verify(task, each)
        else:
            self._settle(task, each)

    def _verify(self, task: Task, each: Try) -> None:
        def work() -> Effect:
            verdict = self._verified(task, each)
            return lambda: self._judged(task, each, verdict)

        self._background.submit(work, slot=False)

    def _verified(self, task: Task, each: Try) -> Verdict:
        """A full disk or a checker that dies is nothing the work did: it is tried again."""
        told = ""
        for patience in (*PATIENCE, 0.0):
            try:
                return self.inspector.verify(task, each)
            except Exception as error:
                told = _told(error)
            self.clock.sleep(patience)
        return Verdict(Ruling.UNDECIDED, f"verification failed {len(PATIENCE) + 1} times: {told}")

    def _judged(self, task: Task, each: Try, verdict: Verdict) -> None:
        self._note_try("verdict", task, each, verdict=to_json(verdict))
        if verdict.ruling is Ruling.ACCEPTED and verdict.implementation:
            self._sparing.accepted()
        self._settle(task, each)

    def _settle(self, task: Task, each: Try) -> None:
        if self._launches and retrying.wants_retry(self.run, task, each):
            self._ready.append(task.id)

    def _raise_alert(self, ended: Ended) -> None:
        """Many agents that fail the same way have one cause: say so while it is early."""
        if ended.outcome in (*ANSWERS, Outcome.CANCELLED):
            return
        kind, threshold = _kind(ended), self.run.options.alert_after
        self._alike[kind] += 1
        if 0 < threshold == self._alike[kind]:
            self.note("alert", {"text": f"{threshold} agents ended the same way: {kind}"})


def _told(error: Exception) -> str:
    return " ".join(str(error).split())


def _kind(ended: Ended) -> str:
    """An outcome and its reason without the numbers that make each one unique."""
    reason = re.sub(r"[0-9a-f]{8,}|\d+", "#", ended.reason)[:120]
    return f"{ended.outcome}: {reason}" if reason else str(ended.outcome)
