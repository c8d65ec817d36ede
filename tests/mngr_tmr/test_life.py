"""The life of a task as a pure function: no threads, no agents, no journal on a disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch.effects import (
    Cancelled,
    Collect,
    Effect,
    Finished,
    Go,
    Launched,
    LaunchTry,
    OfTask,
    OfTry,
    Remind,
    Sighted,
    Slow,
    Verified,
    Verify,
    Write,
)
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.dispatch.life import NUDGE, Stage, advance, standing
from mngr_tmr.journal.fold import apply
from mngr_tmr.journal.model import Ended, Outcome, Ruling, Run, Verdict
from mngr_tmr.run.options import Options
from tests.support.properties import examples
from tests.support.simulated import ACCEPTED, UNCHANGED, waiting

PUBLISHED = Sighting("RUNNING", outcome=UNCHANGED)
OVERLOADED = waiting("error: 529 overloaded")
QUOTA = waiting("quota: resets 2000000000")
DIED = Sighting("FAILED", "killed before it could report")
FIXED = Ended(Outcome.FIXED, ref="refs/mngr/tmr/r/a/1")


class Tasks:
    """Tasks of a run, and what their lives have asked for so far."""

    def __init__(self, *names: str) -> None:
        self.run, self.now = Run(), 1_700_000_000.0
        self.lines: list[str] = []
        self.asked: list[Effect] = []
        tasks: list[Json] = [{"task": n, "node_id": f"t.py::{n}", "want": "fix"} for n in names]
        options = to_json(Options(idle=2.0, retries=1))
        self._write(Write("run_started", {"run": "r", "base": "b" * 40, "options": options}))
        self._write(Write("selected", {"tasks": tasks}))
        self.stages = {name: standing(self.run, self.run.tasks[name])[0] for name in names}

    def happens(self, event: OfTask) -> list[Effect]:
        """The effects that follow, without the lines, which are in the run already."""
        stage, effects = advance(self.run, self.stages[event.task], event)
        self.stages[event.task] = stage
        for line in [each for each in effects if isinstance(each, Write)]:
            self._write(line)
        rest: list[Effect] = [each for each in effects if not isinstance(each, Write)]
        self.asked += rest
        return rest

    def seen(self, task: str, sighting: Sighting | None) -> list[Effect]:
        self.now += 3
        return self.happens(Sighted(task, sighting, self.now))

    def cancel(self) -> None:
        self._write(Write("control", {"action": "cancel"}))

    def _write(self, line: Write) -> None:
        self.lines.append(line.type)
        apply(self.run, {"type": line.type, "time": self.now, **line.fields})


def test_a_task_is_launched_looked_at_collected_and_verified() -> None:
    tasks = Tasks("a")
    assert tasks.happens(Go("a")) == [LaunchTry("a", 1)]
    for happened in (Launched("a", "agent-a"), Sighted("a", Sighting("RUNNING"), tasks.now)):
        assert tasks.happens(happened) == []
        assert tasks.stages["a"] is Stage.WORKING
    assert tasks.seen("a", PUBLISHED) == [Collect("a", 1, Outcome.UNCHANGED, "published")]
    assert tasks.happens(Finished("a", FIXED)) == [Verify("a", 1)]
    assert tasks.happens(Verified("a", ACCEPTED)) == []
    assert tasks.stages["a"] is Stage.OVER
    told = ["try_intended", "try_launched", "gathering", "try_ended", "verdict"]
    assert tasks.lines[2:] == told
    assert tasks.run.tasks["a"].verdict == ACCEPTED


def test_an_agent_that_dies_is_followed_by_another_until_the_tries_are_used_up() -> None:
    tasks = Tasks("a")
    for number, following in ((1, Stage.READY), (2, Stage.OVER)):
        assert tasks.happens(Go("a")) == [LaunchTry("a", number)]
        tasks.happens(Launched("a", "agent-a"))
        reason = "FAILED: killed before it could report"
        assert tasks.seen("a", DIED) == [Collect("a", number, Outcome.DIED, reason)]
        assert tasks.happens(Finished("a", Ended(Outcome.DIED))) == []
        assert tasks.stages["a"] is following


def test_an_overload_slows_the_run_and_a_quota_pauses_it() -> None:
    tasks = Tasks("a")
    tasks.happens(Go("a"))
    tasks.happens(Launched("a", "agent-a"))
    assert tasks.seen("a", OVERLOADED) == [Slow(), Remind("a", 1, NUDGE)]
    assert tasks.stages["a"] is Stage.WORKING
    assert tasks.seen("a", QUOTA) == [Collect("a", 1, Outcome.QUOTA, QUOTA.reason)]
    assert tasks.run.paused == QUOTA.reason
    assert tasks.lines[-2:] == ["paused", "gathering"]


SIGHTINGS = (Sighting("RUNNING"), PUBLISHED, OVERLOADED, QUOTA, DIED, None)
ENDS = (FIXED, Ended(Outcome.UNCHANGED), Ended(Outcome.BLOCKED), Ended(Outcome.DIED))
VERDICTS = (ACCEPTED, Verdict(Ruling.REFUSED, "no"), Verdict(Ruling.UNDECIDED, "disk full"))


def answer(tasks: Tasks, task: str, kind: int) -> OfTask | None:
    """What may happen next to a task in its stage, chosen by `kind`; 1 leads to its end."""
    match tasks.stages[task]:
        case Stage.READY:
            return Go(task)
        case Stage.LAUNCHING:
            failed = Finished(task, Ended(Outcome.LAUNCH_FAILED))
            return failed if kind == 0 else Launched(task, "agent")
        case Stage.WORKING:
            tasks.now += 3
            return Sighted(task, SIGHTINGS[kind % len(SIGHTINGS)], tasks.now)
        case Stage.COLLECTING:
            return Finished(task, ENDS[kind % len(ENDS)])
        case Stage.VERIFYING:
            return Verified(task, VERDICTS[kind % len(VERDICTS)])
    return None


def expected(stage: Stage) -> tuple[type[OfTask], ...]:
    return {
        Stage.READY: (Go,),
        Stage.LAUNCHING: (Launched, Finished),
        Stage.WORKING: (Sighted, Cancelled),
        Stage.COLLECTING: (Finished,),
        Stage.VERIFYING: (Verified,),
    }.get(stage, ())


def strays(task: str, stage: Stage) -> list[OfTask]:
    """Return events that no task in that stage expects."""
    every: list[OfTask] = [Go(task), Launched(task, "x"), Sighted(task, None, 0.0), Cancelled(task)]
    every += [Finished(task, FIXED), Verified(task, ACCEPTED)]
    return [each for each in every if not isinstance(each, expected(stage))]


def look_at(tasks: Tasks, task: str) -> None:
    """Check that a killed process continues in the same stage, and stray events change nothing."""
    stage = tasks.stages[task]
    resumed = standing(tasks.run, tasks.run.tasks[task])[0]
    assert tasks.run.cancelled or resumed is stage
    assert all(advance(tasks.run, stage, e) == (stage, ()) for e in strays(task, stage))


def go_on(tasks: Tasks, task: str, kind: int) -> None:
    event = answer(tasks, task, kind)
    if tasks.run.cancelled and tasks.stages[task] is Stage.WORKING:
        event = Cancelled(task)
    if event and not (tasks.run.cancelled and isinstance(event, Go)):
        tasks.happens(event)
    look_at(tasks, task)


@examples(300)
@given(
    orders=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 11)), max_size=80),
    cancelled=st.one_of(st.none(), st.integers(0, 80)),
)
def test_every_task_ends_in_any_order_of_events_and_no_effect_is_asked_for_twice(
    orders: Sequence[tuple[str, int]], cancelled: int | None
) -> None:
    tasks = Tasks(*"abc")
    for number, (task, kind) in enumerate(orders):
        if number == cancelled:
            tasks.cancel()
        go_on(tasks, task, kind)
    for task in "abc":
        for _ in range(6):  # from READY to OVER, where nothing goes wrong any more
            go_on(tasks, task, 1)
    ends = (Stage.OVER, Stage.READY) if tasks.run.cancelled else (Stage.OVER,)
    assert all(stage in ends for stage in tasks.stages.values()), tasks.stages
    asked = [e for e in tasks.asked if isinstance(e, OfTry)]
    twice = Counter((type(each), each.task, each.number) for each in asked)
    assert not [each for each, count in twice.items() if count > 1]
