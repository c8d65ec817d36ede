"""The real scheduler, journal and fold over agents that exist only on paper."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.model.state import EndKind
from mngr.model.struct import Json
from mngr_outcome.codec import from_json, to_json
from mngr_tmr.dispatch.conductor import SPARE, Conductor
from mngr_tmr.dispatch.effects import Collect
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.integrate.ranking import counts
from mngr_tmr.journal.fold import apply, fold
from mngr_tmr.journal.journal import NAME, Journal, read
from mngr_tmr.journal.model import Outcome, Ruling, Run, TestRun, Try, Verdict
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.options import Options
from tests.support.simulated import (
    ACCEPTED,
    DONE,
    Inline,
    Life,
    Order,
    P,
    SimulatedClock,
    SimulatedFleet,
    SimulatedInbox,
    SimulatedInspector,
    SimulatedTrials,
    T,
    waiting,
)


class SlowToCollect(Inline):
    """Collecting the work of an agent takes a minute of the simulated clock."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = super().submit(fn, *args, **kwargs)
        if isinstance(args[0], Collect):
            due = self._clock.now() + 60
            future.done = lambda: self._clock.now() >= due  # type: ignore[method-assign]
        return future


class Stage:
    """A run with tasks, on paper."""

    def __init__(self, folder: Path, options: Options | None = None) -> None:
        self.folder = folder
        self.clock = SimulatedClock()
        self.fleet = SimulatedFleet(self.clock)
        self.inspector = SimulatedInspector()
        self.trials = SimulatedTrials()
        self.journal = Journal(folder, self.clock.now)
        self.journal.__enter__()
        self.inbox = SimulatedInbox()
        self.orders = self.inbox.orders
        self.run = fold(read(folder))
        if not self.run.name:
            self.note(
                "run_started",
                run="r",
                repository="/r",
                base="b" * 40,
                options=to_json(options or Options(max_agents=3, idle=2.0)),
            )

    def note(self, type: str, **fields: Json) -> None:
        apply(self.run, self.journal.append(type, fields, sync=False))

    def tasks(self, *tasks: str, canary: str = "") -> None:
        told: list[Json] = [
            {"task": each, "node_id": f"t.py::{each}", "want": "fix", "canary": canary}
            for each in tasks
        ]
        self.note("selected", tasks=told)

    def conductor(self, executor: Executor | None = None, *, launches: bool = True) -> Conductor:
        return Conductor(
            self.run,
            self.journal,
            self.fleet,
            self.inspector,
            self.trials,
            self.clock,
            executor or Inline(),
            self.inbox,
            launches=launches,
        )

    def conduct(self) -> Run:
        self.conductor().conduct(1.0)
        return self.run

    def outcome(self, task: str) -> str:
        latest = self.run.tasks[task].latest
        assert latest is not None and latest.ended is not None
        return latest.ended.outcome

    def close(self) -> None:
        self.journal.__exit__(None, None, None)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "run")
    yield stage
    stage.close()


def test_all_tasks_get_an_agent_and_never_more_at_once_than_slots(stage: Stage) -> None:
    stage.tasks(*(f"t{n}" for n in range(10)))
    run = stage.conduct()
    assert len(stage.fleet.launched) == 10
    assert stage.fleet.most == 3
    assert {stage.outcome(each) for each in run.tasks} == {Outcome.UNCHANGED}
    assert sorted(stage.fleet.stopped) == sorted(stage.fleet.launched)


def test_a_free_slot_is_filled_before_the_work_of_the_one_before_is_brought_home(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=4))
    stage.tasks("a", "b", "c", "d", "e")
    stage.conduct()
    launches, collects = ([f"{word} {n}" for n in "abcde"] for word in ("launch", "collect"))
    assert stage.fleet.calls == [*launches, *collects]
    stage.close()


def test_agents_that_have_published_do_not_pile_up_while_collecting_is_slow(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=8))
    stage.tasks(*(f"t{n}" for n in range(40)))
    alive: list[int] = []

    def watch(run: Run) -> None:
        latest = [task.latest for task in run.tasks.values()]
        alive.append(sum(each is not None and each.ended is None for each in latest))

    stage.conductor(SlowToCollect(stage.clock)).conduct(1.0, watch)
    assert len(stage.fleet.stopped) == 40
    assert max(alive) == 8 + 8 // SPARE
    stage.close()


def test_a_slot_is_kept_until_it_is_known_what_its_agent_spent(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=1, max_tokens=1000))
    stage.tasks("a", "b")
    stage.conduct()
    assert stage.fleet.calls == ["launch a", "collect a", "launch b", "collect b"]
    stage.close()


def test_an_idle_agent_is_reminded_once_and_then_given_up(stage: Stage) -> None:
    stage.tasks("a")
    stage.fleet.life = lambda order: Life(1.0, waiting("end_of_turn"))
    stage.conduct()
    assert [name for name, _ in stage.fleet.reminded] == ["tmr-r-a-1"]
    assert stage.outcome("a") == Outcome.NO_RESULT


@pytest.mark.parametrize(
    ("last", "outcome", "tries"),
    [
        (Sighting("FAILED", "killed before it could report"), Outcome.DIED, 2),
        (Sighting("LOST", "its tmux session is gone"), Outcome.DIED, 2),
        (Sighting("FAILED", "late", ending=EndKind.TIMED_OUT), Outcome.TIMED_OUT, 1),
        (Sighting("FAILED", "too many", ending=EndKind.OVER_LIMIT), Outcome.OVER_BUDGET, 1),
        (Sighting("LOST", "it timed out, over its limit"), Outcome.DIED, 2),
        (Sighting("DONE", "exit code 0"), Outcome.NO_RESULT, 1),
        (waiting("permission: may I?"), Outcome.BLOCKED, 1),
        (waiting("dialog: Log in"), Outcome.BLOCKED, 1),
        (waiting("unreachable: no server"), Outcome.TIMED_OUT, 1),
        (Sighting("WAITING", "unreachable words", waiting="permission"), Outcome.BLOCKED, 1),
        (Sighting("WAITING", "permission words", waiting="unreachable"), Outcome.TIMED_OUT, 1),
        (Sighting("RUNNING", outcome=b"{"), Outcome.NO_RESULT, 1),
        (Sighting("LAUNCH_FAILED", "no room"), Outcome.LAUNCH_FAILED, 2),
    ],
)
def test_every_end_is_its_own_outcome_and_only_infrastructure_is_retried(
    stage: Stage, last: Sighting, outcome: Outcome, tries: int
) -> None:
    stage.tasks("a")
    stage.fleet.life = lambda order: Life(1.0, last)
    run = stage.conduct()
    assert stage.outcome("a") == outcome
    assert len(run.tasks["a"].tries) == tries


def test_a_quota_pauses_the_run_until_its_reset_and_costs_no_try(stage: Stage) -> None:
    stage.tasks("a", "b", "c", "d", "e")
    begin = stage.clock.now()
    reset = begin + 5000

    def life(order: Order) -> Life:
        if stage.clock.now() < reset:
            return Life(1.0, waiting(f"quota: resets {reset:.0f}"))
        return DONE

    stage.fleet.life = life
    run = stage.conduct()
    assert stage.clock.now() >= reset
    assert {stage.outcome(each) for each in run.tasks} == {Outcome.UNCHANGED}
    assert len(stage.fleet.launched) == 5 + 3  # three had begun when the first said so


@pytest.mark.parametrize("lag", [-3600.0, 6.0])
def test_a_quota_that_is_never_back_when_it_says_is_asked_ever_less_often(
    stage: Stage, lag: float
) -> None:
    """Its reset lies in the past, or a few seconds ahead, again and again."""
    stage.tasks("a", "b", "c", "d", "e")
    begin = stage.clock.now()
    back = begin + 30 * 3600

    def life(order: Order) -> Life:
        if stage.clock.now() < back:
            return Life(1.0, waiting(f"quota: resets {stage.clock.now() + lag:.0f}"))
        return DONE

    stage.fleet.life = life
    conductor = stage.conductor()
    while not conductor.finished:
        conductor.step()
        assert len(stage.fleet.launched) < 100, "an endless loop"
        stage.clock.sleep(1.0 if stage.run.paused_until < stage.clock.now() + 60 else 50.0)
    assert {stage.outcome(each) for each in stage.run.tasks} == {Outcome.UNCHANGED}
    assert stage.clock.now() < back + 4.1 * 3600
    pauses = [each for each in read(stage.folder) if each["type"] == "paused"]
    assert len(pauses) <= 3 + 2 + 30 / 4 + 1
    assert len(stage.fleet.launched) <= 5 + 3 * len(pauses)
    told = [
        each
        for each in stage.run.alerts
        if "not reset at the stated time, 3 times in a row" in each
    ]
    assert len(told) == 1, stage.run.alerts
    assert stage.run.missed == 0


def test_a_quota_does_not_end_a_pause_by_hand(stage: Stage) -> None:
    stage.tasks("a", "b", "c", "d", "e")
    stage.fleet.life = lambda order: Life(
        3.0, waiting(f"quota: resets {stage.clock.now() + 9:.0f}")
    )
    conductor = stage.conductor()
    conductor.step()
    stage.orders.append({"action": "pause"})
    for _ in range(30):
        conductor.step()
        stage.clock.sleep(1.0)
    assert stage.run.paused == "paused by hand"
    assert len(stage.fleet.launched) == 3


def test_an_overload_halves_the_slots_which_come_back_one_by_one(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=8, idle=2.0))
    stage.tasks(*(f"t{n}" for n in range(40)))
    busy = waiting("error: 529 overloaded")
    stage.fleet.life = lambda order: Life(1.0, busy) if order.task == "t0" else DONE
    seen: list[int] = []
    conductor = stage.conductor()
    conductor.conduct(1.0, lambda run: seen.append(run.slots))
    assert 4 in seen
    assert stage.fleet.reminded[0][0] == "tmr-r-t0-1"
    stage.close()


def test_those_with_the_same_failure_wait_for_a_canary_and_begin_with_its_fix(
    stage: Stage,
) -> None:
    stage.tasks("first")
    stage.tasks("second", "third", canary="first")
    stage.trials.green = lambda node_id: node_id.endswith("third")
    run = stage.conduct()
    assert stage.fleet.launched == ["tmr-r-first-1", "tmr-r-second-1"]
    assert run.tasks["second"].tries[0].base == "f" * 40
    assert run.tasks["third"].skipped == "passes with the fix of first"


def test_a_canary_that_passes_with_another_fix_gives_way_to_the_next(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=1, max_tokens=1000))
    stage.tasks("other", "busy", "first")
    stage.tasks("second", "third", canary="first")
    stage.trials.green = lambda node_id: node_id.endswith("first")
    run = stage.conduct()
    assert run.tasks["first"].skipped == "passes with the fix of other"
    assert "tmr-r-second-1" in stage.fleet.launched
    stage.close()


def test_what_is_missing_counts_for_a_whole_cluster_once_two_canaries_say_so(
    stage: Stage,
) -> None:
    stage.tasks("first")
    stage.tasks("second", "third", "fourth", canary="first")
    stage.fleet.life = lambda order: Life(1.0, waiting("permission: install it?"))
    run = stage.conduct()
    assert stage.fleet.launched == ["tmr-r-first-1", "tmr-r-fourth-1"]
    told = "blocked like first, fourth: asked for permission: install it?"
    assert [run.tasks[each].skipped for each in ("second", "third")] == [told, told]
    assert counts(run) == {"blocked": 4}


def test_a_cluster_that_is_given_up_names_each_canary_with_its_own_end(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(canaries=3, retries=0))
    stage.tasks("a")
    stage.tasks("b", "c", "d", "e", canary="a")
    late = Life(1.0, Sighting("FAILED", "late", ending=EndKind.TIMED_OUT))
    died = Life(1.0, Sighting("FAILED", "exit code 3"))
    stage.fleet.life = lambda order: died if order.task == "a" else late
    run = stage.conduct()
    had = [name for name, task in run.tasks.items() if task.tries]
    waited = next(task for task in run.tasks.values() if not task.tries)
    late_ones = ", ".join(each.removeprefix("tmr-r-")[:-2] for each in stage.fleet.launched[1:])
    assert len(had) == 3
    assert waited.skipped == f"died like a; timed out like {late_ones}: late"
    stage.close()


@pytest.mark.parametrize(("canaries", "launched"), [(3, 3), (1, 1), (0, 6)])
def test_a_cluster_is_given_up_after_some_canaries(
    tmp_path: Path, canaries: int, launched: int
) -> None:
    stage = Stage(tmp_path / "run", Options(canaries=canaries, retries=0))
    stage.tasks("a")
    stage.tasks("b", "c", "d", "e", "f", canary="a" if canaries else "")
    stage.fleet.life = lambda order: Life(1.0, Sighting("FAILED", "late", ending=EndKind.TIMED_OUT))
    run = stage.conduct()
    assert len(stage.fleet.launched) == launched
    assert counts(run) == {"timed out": 6}
    stage.close()


def test_the_next_canary_is_of_another_kind_and_then_the_fastest(stage: Stage) -> None:
    nodes = {"a": "t.py::x[1]", "b": "t.py::x[2]", "c": "t.py::y", "d": "t.py::z"}
    seconds = {"a": 0.0, "b": 0.1, "c": 3.0, "d": 2.0}
    runs = {nodes[each]: to_json(TestRun("failed", seconds[each])) for each in nodes}
    stage.note("baseline", results=runs)
    tasks: list[Json] = [
        {"task": id, "node_id": node, "want": "fix", "canary": "a" if id != "a" else ""}
        for id, node in nodes.items()
    ]
    stage.note("selected", tasks=tasks)
    stage.fleet.life = lambda order: Life(1.0, Sighting("DONE", "exit code 0"))
    stage.conduct()
    assert stage.fleet.launched == ["tmr-r-a-1", "tmr-r-d-1", "tmr-r-c-1"]


def test_nobody_is_launched_for_a_test_that_passes_with_what_was_accepted(tmp_path: Path) -> None:
    """All that still fail are tried at once, and once for each new fix."""
    stage = Stage(tmp_path / "run", Options(max_agents=1, max_tokens=1000))
    stage.tasks("a", "b", "c", "d")
    stage.trials.green = lambda node_id: node_id.endswith("c")
    stage.inspector.judge = lambda task, each: (
        ACCEPTED if task.id == "a" else Verdict(Ruling.REFUSED, "no")
    )
    run = stage.conduct()
    assert stage.fleet.launched == ["tmr-r-a-1", "tmr-r-b-1", "tmr-r-d-1"]
    assert run.tasks["c"].skipped == "passes with the fix of a"
    assert [fixes for fixes, _ in stage.trials.asked] == [("a",)]
    stage.close()


def test_a_flaky_test_gets_an_agent_even_if_it_passes_once_with_a_fix(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=1, max_tokens=1000))
    stage.trials.green = lambda node_id: True
    for outcome in ("failed", "passed"):
        stage.note("baseline", results={"t.py::c": to_json(TestRun(outcome))})
    stage.tasks("a", "b", "c", "d")
    run = stage.conduct()
    assert stage.fleet.launched == ["tmr-r-a-1", "tmr-r-b-1", "tmr-r-c-1"]
    assert [run.tasks[each].skipped for each in "cd"] == ["", "passes with the fix of a"]
    stage.close()


def test_those_that_still_fail_with_a_fix_are_grouped_by_how_they_fail_now(stage: Stage) -> None:
    stage.tasks("a")
    stage.tasks("b", "c", "d", "e", canary="a")
    stage.trials.run = lambda node: TestRun("failed", signature=str(node[-1] in "bc"))
    stage.inspector.judge = lambda task, each: (
        ACCEPTED if task.id == "a" else Verdict(Ruling.REFUSED, "no")
    )
    run = stage.conduct()
    assert stage.fleet.launched[:3] == ["tmr-r-a-1", "tmr-r-b-1", "tmr-r-d-1"]
    assert {task.base for task in run.tasks.values()} == {"", "f" * 40}


def test_a_run_in_which_nothing_happens_says_what_it_waits_for(stage: Stage) -> None:
    stage.tasks("a", "b")
    stage.fleet.life = lambda order: Life(400.0, DONE.last)
    said: list[str] = []
    stage.conductor().conduct(1.0, lambda run: said.append(run.waiting))
    told = "waiting for 2 agents (tmr-r-a-1, tmr-r-b-1); time limit 30 min each"
    assert set(said) == {"", told}
    assert [each["type"] for each in read(stage.folder)].count("waiting") == 1
    stage.orders.append({"action": "pause"})
    stage.tasks("c")
    conductor = stage.conductor()
    for _ in range(90):
        conductor.step()
        stage.clock.sleep(1.0)
    assert stage.run.waiting == "paused by hand; to continue: mngr tmr unpause r"


@pytest.mark.parametrize(
    ("options", "launched"),
    [(Options(max_launches=4), 4), (Options(max_tokens=15), 2), (Options(max_cost=0.015), 2)],
)
def test_a_run_stops_launching_when_its_budget_is_used_up(
    tmp_path: Path, options: Options, launched: int
) -> None:
    stage = Stage(tmp_path / "run", replace(options, max_agents=2))
    stage.tasks(*(f"t{n}" for n in range(9)))
    run = stage.conduct()
    assert len(stage.fleet.launched) == launched
    skipped = [task for task in run.tasks.values() if task.skipped]
    assert len(skipped) == 9 - launched
    assert all("over budget" in task.skipped for task in skipped)
    stage.close()


def test_a_model_without_a_price_counts_against_the_budget_and_that_is_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=1, max_cost=1.0))
    stage.tasks("a", "b", "c")
    spent = Spending(5, None, 0.6, ("claude-unheard-of",))
    collect = stage.fleet.collect
    stage.fleet.collect = lambda *given: replace(collect(*given), spent=spent)  # type: ignore[method-assign]
    run = stage.conduct()
    assert len(stage.fleet.launched) == 2
    assert run.tasks["c"].skipped == "over budget: the cost budget of the run ($1.00) is used up"
    told = (
        "the price of claude-unheard-of is not known; "
        "the budget uses the price of its vendor's most expensive model"
    )
    assert run.alerts == [told]
    stage.close()


def test_an_agent_over_its_own_budget_is_ended(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(agent_max_tokens=100))
    stage.tasks("a")
    stage.fleet.life = lambda order: Life(1.0, Sighting("RUNNING", spent=Spending(101)))
    stage.conduct()
    assert stage.outcome("a") == Outcome.OVER_BUDGET
    stage.close()


def test_cancel_ends_what_runs_and_launches_nothing_more(stage: Stage) -> None:
    stage.tasks(*(f"t{n}" for n in range(9)))
    conductor = stage.conductor()
    conductor.step()
    conductor.step()
    stage.orders.append({"action": "cancel"})
    conductor.conduct(1.0)
    assert len(stage.fleet.launched) == 3
    assert stage.run.cancelled
    assert {stage.outcome(f"t{n}") for n in range(3)} == {Outcome.CANCELLED}


def test_pause_holds_launches_back_until_resume(stage: Stage) -> None:
    stage.tasks(*(f"t{n}" for n in range(9)))
    stage.orders.append({"action": "pause"})
    conductor = stage.conductor()
    for _ in range(20):
        conductor.step()
        stage.clock.sleep(1.0)
    assert stage.fleet.launched == []
    stage.orders.append({"action": "resume"})
    conductor.conduct(1.0)
    assert len(stage.fleet.launched) == 9


def test_retune_changes_the_slots_of_a_running_run(stage: Stage) -> None:
    stage.tasks(*(f"t{n}" for n in range(9)))
    stage.orders.append({"action": "retune", "options": {"max_agents": 6}})
    stage.conduct()
    assert stage.fleet.most == 6


def test_retune_raises_a_budget_of_a_running_run_and_keeps_the_others(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=3, max_launches=3, max_time=3600.0))
    stage.tasks(*(f"t{n}" for n in range(9)))
    conductor = stage.conductor()
    conductor.step()
    stage.note("slots", slots=2)
    stage.orders.append({"action": "retune", "options": {"max_launches": 5}})
    conductor.step()
    assert stage.run.slots == 2, "what an overload took is not given back"
    conductor.conduct(1.0)
    assert len(stage.fleet.launched) == 5
    assert (stage.run.options.max_launches, stage.run.options.max_time) == (5, 3600.0)
    stage.close()


def test_many_agents_that_fail_alike_raise_one_alert(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "run", Options(max_agents=9, alert_after=4, retries=0))
    stage.tasks(*(f"t{n}" for n in range(9)))
    stage.fleet.life = lambda order: Life(1.0, Sighting("FAILED", f"exit code {order.number}"))
    run = stage.conduct()
    assert run.alerts == ["4 agents ended the same way: died: FAILED: exit code #"]
    stage.close()


class Killed(BaseException):
    """Stands for kill -9."""


def dying_after(stage: Stage, lines: int) -> None:
    append: Callable[..., object] = stage.journal.append
    left = [lines]

    def dying(type: str, fields: Mapping[str, Json], *, sync: bool = True) -> object:
        event = append(type, fields, sync=False)
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return event

    stage.journal.append = dying  # type: ignore[method-assign, assignment]


@settings(max_examples=60, deadline=None)
@given(kills=st.lists(st.integers(0, 25), min_size=1, max_size=6))
def test_a_killed_conductor_is_followed_by_one_that_launches_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int]
) -> None:
    stage = Stage(tmp_path_factory.mktemp("run") / "run")
    stage.tasks(*(f"t{n}" for n in range(6)))
    world = stage.fleet
    for kill in [*kills, 10_000]:
        dying_after(stage, kill)
        try:
            stage.conduct()
        except Killed:
            pass
        stage.close()
        stage = Stage(stage.folder)
        stage.fleet, stage.fleet.clock = world, stage.clock
        stage.clock.time = world.clock.time
    assert len(world.launched) == len(set(world.launched)) == 6
    assert {stage.outcome(f"t{n}") for n in range(6)} == {Outcome.UNCHANGED}
    stage.close()


def test_without_launches_only_what_agents_have_left_is_verified(stage: Stage) -> None:
    stage.tasks("a", "b", "c")
    for task, outcome in (("a", "died"), ("b", "fixed")):
        told: dict[str, Json] = {"task": task, "try": 1}
        stage.note("try_intended", **told, agent_name=f"tmr-r-{task}-1", base="b" * 40)
        stage.note("try_launched", **told, agent_id=f"agent-{task}")
        stage.note("try_ended", **told, ended={"outcome": outcome})
    stage.conductor(launches=False).conduct(1.0)
    assert stage.fleet.launched == []
    assert [task.verdict for task in stage.run.tasks.values()] == [None, ACCEPTED, None]


@pytest.mark.parametrize(("seconds", "rest"), [(2.0, 8), (15.0, 10)])
def test_a_look_that_takes_long_is_followed_by_a_rest_in_which_the_run_goes_on(
    stage: Stage, seconds: float, rest: int
) -> None:
    stage.tasks("a")
    stage.fleet.life = lambda order: Life(seconds + 3.0, DONE.last)
    look = stage.fleet.look

    def slow(tries: Sequence[Try] | None = None) -> Mapping[str, Sighting]:
        stage.clock.sleep(seconds)
        return look(tries)

    stage.fleet.look = slow  # type: ignore[method-assign]
    steps: list[int] = []
    stage.conductor().conduct(1.0, lambda run: steps.append(stage.fleet.looks))
    assert stage.fleet.looks == 2 < steps.count(1) == rest


def test_the_end_of_a_large_journal_is_found_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / NAME
    with path.open("wb") as file:
        file.truncate(32 << 20)
    tracemalloc.start()
    try:
        with Journal(tmp_path, lambda: 1.0) as journal:
            journal.append("alert", {"text": "late"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert [each["type"] for each in read(tmp_path)] == ["alert"]


def test_a_torn_line_at_the_end_of_a_journal_is_passed_over(stage: Stage) -> None:
    stage.tasks("a")
    stage.close()
    with (stage.folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"type": "selected", "tas')
    again = Stage(stage.folder)
    again.tasks("b")
    assert list(fold(read(stage.folder)).tasks) == ["a", "b"]
    again.close()


@given(st.builds(Options, max_agents=st.integers(1, 9), only=st.text(), paths=st.just(("a",))))
def test_options_survive_the_journal(options: Options) -> None:
    assert from_json(Options, to_json(options)) == options


def test_work_that_could_not_be_verified_is_reported_as_that(stage: Stage) -> None:
    def judge(task: object, each: object) -> Verdict:
        raise OSError("no space left on device")

    stage.inspector.judge = judge
    stage.tasks("a")
    stage.conduct()
    verdict = stage.run.tasks["a"].verdict
    assert verdict and verdict.ruling is Ruling.UNDECIDED
    assert verdict.reason == "verification failed: no space left on device"
    assert counts(stage.run) == {"not verified": 1}
