"""Simulated agents and a simulated clock, for the real scheduler, journal and fold."""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import NamedTuple, ParamSpec, TypeVar

from mngr.model.struct import Json
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.journal.model import Ended, Outcome, Ruling, Task, TestRun, Try, Verdict
from mngr_tmr.run.costs import Spending

P = ParamSpec("P")
T = TypeVar("T")

HEAD = "1" * 40
UNCHANGED = json.dumps(
    {
        "schema": 1,
        "task": "t",
        "try": 1,
        "attempted": "none",
        "blocked": None,
        "head": HEAD,
        "summary": "nothing to do",
        "tests_added": [],
        "confusing": [],
    }
).encode()


class Inline(Executor):
    """Does the work at once, in the caller's thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@dataclass
class SimulatedClock:
    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


class Order(NamedTuple):
    """An agent to launch."""

    task: str
    number: int


@dataclass(frozen=True)
class Life:
    """The behaviour of one simulated agent: after `seconds` it looks like `last`."""

    seconds: float
    last: Sighting


def waiting(reason: str) -> Sighting:
    """Return a look at an agent that waits, as `error: 529 overloaded` says."""
    return Sighting("WAITING", reason, waiting=reason.partition(":")[0])


DONE = Life(5.0, Sighting("RUNNING", outcome=UNCHANGED))
ACCEPTED = Verdict(Ruling.ACCEPTED, "fine", implementation="f" * 40)


@dataclass
class SimulatedFleet:
    """A fleet in which a look costs only what has changed since the last one."""

    clock: SimulatedClock
    life: Callable[[Order], Life] = lambda order: DONE
    launched: list[str] = field(default_factory=list)
    reminded: list[tuple[str, str]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """The calls, in order."""
    looks: int = 0
    most: int = 0
    """The most agents at work at one time: not stopped and without an outcome."""
    _now: dict[str, Sighting] = field(default_factory=dict)
    _gone: set[str] = field(default_factory=set)
    _later: list[tuple[float, str, Sighting]] = field(default_factory=list)

    def launch(self, task: Task, each: Try) -> str:
        self.calls.append(f"launch {task.id}")
        life = self.life(Order(task.id, each.number))
        if life.last.state == "LAUNCH_FAILED":
            raise OSError(life.last.reason)
        if each.agent_name not in self._now:
            self.launched.append(each.agent_name)
            self._now[each.agent_name] = Sighting("RUNNING")
            due = self.clock.now() + life.seconds
            heapq.heappush(self._later, (due, each.agent_name, life.last))
        self.most = max(self.most, len(self._now) - len(self._gone))
        return f"agent-{each.agent_name}"

    def look(self, tries: Sequence[Try] | None = None) -> Mapping[str, Sighting]:
        self.looks += 1
        while self._later and self._later[0][0] <= self.clock.now():
            due, name, last = heapq.heappop(self._later)
            if name in self._now:
                self._now[name] = replace(last, since=last.since or due)
                if last.outcome:
                    self._gone.add(name)
        return self._now

    def remind(self, agent_name: str, text: str) -> None:
        self.reminded.append((agent_name, text))

    def collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> Ended:
        self.calls.append(f"collect {task.id}")
        seen = self._now.get(each.agent_name, Sighting("LOST"))
        self.stopped.append(each.agent_name)  # what it published stays where it is
        self._gone.add(each.agent_name)
        return Ended(outcome, reason, spent=Spending(seen.spent.tokens + 10, 0.01))


@dataclass
class SimulatedInbox:
    """Orders in memory."""

    orders: list[dict[str, Json]] = field(default_factory=list)
    _sent: int = 0

    def waiting(self) -> list[tuple[str, dict[str, Json]]]:
        return [(f"{self._sent + n}", order) for n, order in enumerate(self.orders)]

    def discard(self, name: str) -> None:
        self._sent += 1
        self.orders.pop(0)


@dataclass
class SimulatedInspector:
    verdict: Verdict = ACCEPTED
    judge: Callable[[Task, Try], Verdict] | None = None

    def verify(self, task: Task, each: Try) -> Verdict:
        return self.judge(task, each) if self.judge else self.verdict


@dataclass
class SimulatedTrials:
    green: Callable[[str], bool] = lambda node_id: False
    run: Callable[[str], TestRun] = lambda node_id: TestRun("failed", signature="as before")
    asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    """The fixes and the tests of each trial."""

    def together(self, fixes: Sequence[Fix], tests: Sequence[str]) -> Mapping[str, TestRun]:
        self.asked.append((tuple(fix.task for fix in fixes), tuple(tests)))
        return {each: TestRun("passed") if self.green(each) else self.run(each) for each in tests}
