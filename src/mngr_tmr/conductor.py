"""Dispatch and gather: keep the slots full, look, remind, collect, verify, until all is said.

Everything that happens is an event first. The conductor holds no truth of its own: a new one,
made from the same journal, goes on where a killed one was.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from mngr.struct import Json
from mngr_tmr import judging, orders
from mngr_tmr.codec import to_json
from mngr_tmr.fold import apply
from mngr_tmr.journal import Journal
from mngr_tmr.judging import Sighting, Step
from mngr_tmr.model import (
    ANSWERS,
    INFRASTRUCTURE,
    Ended,
    Outcome,
    Ruling,
    Run,
    Task,
    Try,
    Verdict,
)

RAMP = 30.0
"""Seconds without an overload after which one more slot is tried."""
CANCELLED = Ended(Outcome.CANCELLED, "the run was cancelled")
NUDGE = "The service was overloaded. Go on with your task; end by publishing your outcome."


@dataclass(frozen=True)
class Order:
    """An agent to be made."""

    task: str
    number: int
    agent_name: str
    node_id: str
    want: str
    base: str


class Fleet(Protocol):
    """The agents of a run. `look` is one reading per host, whatever their number."""

    def launch(self, order: Order) -> str:
        """The id of the agent of that name, made now or by an earlier process."""

    def look(self) -> Mapping[str, Sighting]:
        """By agent name."""

    def remind(self, agent_name: str, text: str) -> None: ...

    def collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> Ended:
        """Bring its commits and artifacts home, then stop it."""

    def stop(self, agent_names: Sequence[str]) -> None: ...


class Inspector(Protocol):
    def verify(self, task: Task, each: Try) -> Verdict: ...

    def released_base(self, canary: Task, verdict: Verdict) -> str:
        """A commit with the canary's fix, for those that waited for it."""

    def passes(self, node_id: str, commit: str) -> bool: ...


class Clock(Protocol):
    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


def agent_name(run: Run, task: Task, number: int) -> str:
    return f"tmr-{run.name}-{task.id}-{number}"


class Conductor:
    def __init__(
        self,
        run: Run,
        journal: Journal,
        fleet: Fleet,
        inspector: Inspector,
        clock: Clock,
        executor: Executor,
        controls: Callable[[], Sequence[Mapping[str, Json]]] = tuple,
    ) -> None:
        self.run, self.journal = run, journal
        self.fleet, self.inspector, self.clock = fleet, inspector, clock
        self._executor, self._controls = executor, controls
        self._ready: deque[str] = deque()
        self._waiting: dict[str, list[str]] = defaultdict(list)
        self._active: dict[str, Try] = {}
        self._busy: dict[Future[Callable[[], None]], str] = {}
        """Launches, collections and verifications under way, each with its task."""
        self._due: list[tuple[Callable[[], Callable[[], None]], str]] = []
        """Those that begin with the end of this step."""
        self._last_launch = self._last_overload = -1e9
        self._last_ramp = clock.now()
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
            latest = task.latest
            if task.skipped or (latest and self._is_settled(task, latest)):
                continue
            if latest is None and task.canary:
                self._waiting[task.canary].append(task.id)
            elif latest is None or self._wants_retry(task, latest):
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
        for canary in list(self._waiting):
            self._release(self.run.tasks[canary])

    def _is_settled(self, task: Task, latest: Try) -> bool:
        if latest.ended is None or self._wants_retry(task, latest):
            return False
        return latest.verdict is not None or not self._needs_verdict(latest.ended)

    def _needs_verdict(self, ended: Ended) -> bool:
        """Commits have to be verified, and so has the claim that none are needed."""
        if ended.outcome is Outcome.CANCELLED:
            return False
        return bool(ended.ref) or ended.outcome in ANSWERS

    def _wants_retry(self, task: Task, latest: Try) -> bool:
        ended = latest.ended
        if ended is None or ended.outcome not in INFRASTRUCTURE or self.run.cancelled:
            return False
        if self._needs_verdict(ended) and (
            latest.verdict is None or latest.verdict.ruling is Ruling.ACCEPTED
        ):
            return False
        # Quota is nobody's fault and does not use up a try: the run pauses until it is back.
        counted = [each for each in task.tries if _counts(each)]
        return len(counted) <= self.run.options.retries

    @property
    def finished(self) -> bool:
        under_way = self._active or self._busy or self._due
        return not (self._ready or under_way or any(self._waiting.values()))

    @property
    def active(self) -> int:
        due = sum(1 for _, task_id in self._due if task_id)
        return len(self._active) + due + sum(1 for each in self._busy.values() if each)

    # the loop

    def conduct(self, tick: float, watch: Callable[[Run], None] = lambda run: None) -> None:
        while not self.finished:
            self.step()
            watch(self.run)
            if not self.finished:
                self.clock.sleep(tick)

    def step(self) -> None:
        self._obey()
        self._finish_work()
        if self._active:
            self._look()
        self._adapt()
        self._fill_slots()
        self._begin_work()

    def note(self, type: str, fields: Mapping[str, Json]) -> None:
        """On the disk, with all others of this step, before anything that follows from it."""
        apply(self.run, self.journal.append(type, fields, sync=False))

    def _note_try(self, type: str, task: Task, each: Try, **fields: Json) -> None:
        self.note(type, {"task": task.id, "try": each.number, **fields})

    # controls, pauses and slots

    def _obey(self) -> None:
        orders.obey(self.run, self.note, self._controls())
        if self.run.cancelled:  # at every step: a launch may have been under way
            self._cancel()

    def _cancel(self) -> None:
        self._ready.clear()
        self._waiting.clear()
        for task_id, each in list(self._active.items()):
            self._collect(self.run.tasks[task_id], each, CANCELLED.outcome, CANCELLED.reason)

    def _adapt(self) -> None:
        run, now = self.run, self.clock.now()
        if run.paused_until and now >= run.paused_until:
            self.note("resumed", {})
        calm = now - max(self._last_overload, self._last_ramp)
        if run.slots < run.options.max_agents and calm >= RAMP:
            self._last_ramp = now
            self.note("slots", {"slots": run.slots + 1})

    def _pause(self, reason: str) -> None:
        until = judging.reset_time(reason, self.clock.now())
        if until > self.run.paused_until:
            self.note("paused", {"reason": reason, "until": until})

    def _overloaded(self) -> None:
        now = self.clock.now()
        if now - self._last_overload > 5.0:  # many agents feel one and the same overload
            self.note("slots", {"slots": max(1, self.run.slots // 2)})
        self._last_overload = now

    # launching

    def _fill_slots(self) -> None:
        run = self.run
        while self._ready and not run.paused and not run.cancelled and self.active < run.slots:
            over = self._over_run_budget()
            if over:
                self._give_up(over)
                return
            now = self.clock.now()
            if now - self._last_launch < run.options.stagger:
                return
            self._last_launch = now
            self._intend(run.tasks[self._ready.popleft()])

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

        def work() -> Callable[[], None]:
            try:
                agent_id = self.fleet.launch(order)
            except Exception as error:
                told = " ".join(str(error).split())
                return lambda: self._end(task, each, Ended(Outcome.LAUNCH_FAILED, told))
            return lambda: self._launched(task, each, agent_id)

        self._submit(task, work)

    def _launched(self, task: Task, each: Try, agent_id: str) -> None:
        self._note_try("try_launched", task, each, agent_id=agent_id)
        self._active[task.id] = each

    def _over_run_budget(self) -> str:
        limits, spent = self.run.options.run_budget, self.run.spent
        minutes = (self.clock.now() - self.run.started) / 60
        if limits.agents is not None and self.run.tries >= limits.agents:
            return f"the run's {limits.agents} agents are used up"
        if limits.tokens is not None and spent.tokens >= limits.tokens:
            return f"the run's {limits.tokens} tokens are used up"
        if limits.cost is not None and spent.cost is not None and spent.cost >= limits.cost:
            return f"the run's {limits.cost:.2f} are spent"
        if limits.minutes is not None and minutes >= limits.minutes:
            return f"the run's {limits.minutes:g} minutes are over"
        return ""

    def _give_up(self, reason: str) -> None:
        waiting = [each for group in self._waiting.values() for each in group]
        for task_id in [*self._ready, *waiting]:
            self.note("skipped", {"task": task_id, "reason": f"over budget: {reason}"})
        self._ready.clear()
        self._waiting.clear()

    # looking

    def _look(self) -> None:
        seen, now = self.fleet.look(), self.clock.now()
        for task_id, each in list(self._active.items()):
            step = judging.judge(each, seen.get(each.agent_name), now, self.run.options)
            self._act(self.run.tasks[task_id], each, step)

    def _act(self, task: Task, each: Try, step: Step) -> None:
        if step.kind == "end":
            if step.outcome is Outcome.QUOTA:
                self._pause(step.text)  # before anything else is launched into the same wall
            self._collect(task, each, step.outcome, step.text)
        elif step.kind in ("remind", "throttle"):
            if step.kind == "throttle":
                self._overloaded()
            self._note_try("reminded", task, each, text=step.text)
            self._remind(task, each, NUDGE if step.kind == "throttle" else step.text)

    def _remind(self, task: Task, each: Try, text: str) -> None:
        """Delivery takes seconds, and may fail: what became of the agent, the next look shows."""

        def work() -> Callable[[], None]:
            with suppress(Exception):
                self.fleet.remind(each.agent_name, text)
            return lambda: None

        self._submit(task, work, slot=False)

    # collecting and verifying

    def _collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> None:
        """What it is judged to be is written down first: once stopped, it looks like any other."""
        self._active.pop(task.id, None)
        if each.ending is None:
            self._note_try("gathering", task, each, outcome=str(outcome), reason=reason)

        def work() -> Callable[[], None]:
            try:
                ended = self.fleet.collect(task, each, outcome, reason)
            except Exception as error:
                told = f"{reason}; collecting failed: {' '.join(str(error).split())}"
                ended = Ended(Outcome.NO_RESULT if outcome is Outcome.UNCHANGED else outcome, told)
            return lambda: self._end(task, each, ended)

        self._submit(task, work, slot=self._keeps_slot(outcome))

    def _keeps_slot(self, outcome: Outcome) -> bool:
        """One that has published works no more; but what it spent is known only once it is home."""
        limits = self.run.options.run_budget
        metered = limits.tokens is not None or limits.cost is not None
        return metered or outcome is not Outcome.UNCHANGED

    def _end(self, task: Task, each: Try, ended: Ended) -> None:
        self._note_try("try_ended", task, each, ended=to_json(ended))
        self._raise_alert(ended)
        if self._needs_verdict(ended):
            self._verify(task, each)
        else:
            self._settle(task, each)

    def _verify(self, task: Task, each: Try) -> None:
        def work() -> Callable[[], None]:
            try:
                verdict = self.inspector.verify(task, each)
            except Exception as error:
                told = f"verification failed: {' '.join(str(error).split())}"
                verdict = Verdict(Ruling.REFUSED, told)
            return lambda: self._judged(task, each, verdict)

        self._submit(task, work, slot=False)

    def _judged(self, task: Task, each: Try, verdict: Verdict) -> None:
        self._note_try("verdict", task, each, verdict=to_json(verdict))
        if verdict.ruling is Ruling.ACCEPTED and self.run.options.canaries:
            self._spare(task, verdict)
        self._settle(task, each)

    def _spare(self, fixed: Task, verdict: Verdict) -> None:
        """Nobody has to find again what has just turned another test green as well."""
        green = set(verdict.turned_green) - {fixed.node_id}
        if not green:
            return
        for task_id in [each for each in self._ready if self._is_new(each, green)]:
            self._ready.remove(task_id)
            self._skip(task_id, f"passes with the fix of {fixed.id}")

    def _is_new(self, task_id: str, green: set[str]) -> bool:
        task = self.run.tasks[task_id]
        return not task.tries and task.node_id in green

    def _settle(self, task: Task, each: Try) -> None:
        if self._wants_retry(task, each):
            self._ready.append(task.id)
        else:
            self._release(task)

    def _release(self, canary: Task) -> None:
        """Tell those that wait for this one what became of it."""
        latest = canary.latest
        if not self._waiting.get(canary.id):
            return
        if not canary.skipped and (latest is None or not self._is_settled(canary, latest)):
            return
        waiting = self._waiting.pop(canary.id)
        verdict = canary.verdict

        def work() -> Callable[[], None]:
            fixed = verdict is not None and verdict.ruling is Ruling.ACCEPTED
            base = self.inspector.released_base(canary, verdict) if fixed and verdict else ""
            green = {
                each: bool(base) and self.inspector.passes(self.run.tasks[each].node_id, base)
                for each in waiting
            }
            return lambda: self._released(canary, waiting, base, green)

        self._submit(canary, work, slot=False)

    def _released(
        self, canary: Task, waiting: Sequence[str], base: str, green: Mapping[str, bool]
    ) -> None:
        ended = canary.latest.ended if canary.latest else None
        blocked = ended.reason if ended and ended.outcome is Outcome.BLOCKED else ""
        for task_id in waiting:
            if blocked:
                self._skip(task_id, f"blocked like {canary.id}: {blocked}")
            elif green[task_id]:
                self._skip(task_id, f"passes with the fix of {canary.id}")
            else:
                self.note("released", {"task": task_id, "base": base})
                self._ready.append(task_id)

    def _skip(self, task_id: str, reason: str) -> None:
        self.note("skipped", {"task": task_id, "reason": reason})

    # alerts

    def _raise_alert(self, ended: Ended) -> None:
        """Many agents that fail the same way have one cause: say so while it is early."""
        if ended.outcome in (*ANSWERS, Outcome.CANCELLED):
            return
        kind, threshold = _kind(ended), self.run.options.alert_after
        self._alike[kind] += 1
        if 0 < threshold == self._alike[kind]:
            self.note("alert", {"text": f"{threshold} agents ended the same way: {kind}"})

    # work in the background; only this thread writes the journal

    def _submit(
        self, task: Task, work: Callable[[], Callable[[], None]], *, slot: bool = True
    ) -> None:
        self._due.append((work, task.id if slot else ""))

    def _begin_work(self) -> None:
        """One sync for all that a step announced: with many agents it is the disk that is slow."""
        if self._due:
            self.journal.sync()
        for work, task_id in self._due:
            self._busy[self._executor.submit(work)] = task_id
        self._due.clear()

    def _finish_work(self) -> None:
        for future in [each for each in self._busy if each.done()]:
            del self._busy[future]
            future.result()()


def _counts(each: Try) -> bool:
    return each.ended is not None and each.ended.outcome is not Outcome.QUOTA


def _kind(ended: Ended) -> str:
    """An outcome and its reason without the numbers that make each one unique."""
    import re

    reason = re.sub(r"[0-9a-f]{8,}|\d+", "#", ended.reason)[:120]
    return f"{ended.outcome}: {reason}" if reason else str(ended.outcome)
