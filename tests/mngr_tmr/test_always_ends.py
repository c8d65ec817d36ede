"""Whatever happens to its agents, in whatever order, a run ends with a status."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mngr.model.state import EndKind
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch import life
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.dispatch.roles import Fix
from mngr_tmr.dispatch.throttle import over_budget
from mngr_tmr.integrate import ranking
from mngr_tmr.journal.journal import read
from mngr_tmr.journal.model import Eviction, Pick, Ruling, Task, TestRun, Try, Verdict
from mngr_tmr.run import rounds, selecting
from mngr_tmr.run.options import Options
from tests.mngr_tmr.test_conductor import Killed, Stage, dying_after
from tests.support.simulated import ACCEPTED, DONE, Life, Order, SimulatedTrials, waiting

LIVES = (
    *[DONE] * 8,
    Life(3.0, waiting("permission: may I?")),
    Life(2.0, Sighting("FAILED", "killed before it could report")),
    Life(4.0, Sighting("FAILED", "late", ending=EndKind.TIMED_OUT)),
    Life(2.0, Sighting("DONE", "exit code 0")),
    Life(2.0, Sighting("FAILED", "too many", ending=EndKind.OVER_LIMIT)),
    Life(1.0, waiting("end_of_turn")),
    Life(1.0, waiting("error: 529 overloaded")),
    Life(0.0, Sighting("LAUNCH_FAILED", "no room")),
)
VERDICTS = (
    *[ACCEPTED] * 3,
    replace(ACCEPTED, implementation="", other="e" * 40),
    Verdict(Ruling.REFUSED, "breaks something"),
    *[replace(ACCEPTED, ruling=Ruling.HELD, flags=("a.py:1: x (why)",))] * 2,
    Verdict(Ruling.UNCHANGED, "no change was required"),
)
STEPS = 5000


class Fate:
    """Decides by a seed what happens to each agent; the same question gives the same answer."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def one(self, *question: object) -> random.Random:
        return random.Random(f"{self._seed} {question}")

    def options(self) -> Options:
        dice = self.one("options")
        return Options(
            max_agents=dice.randint(1, 3),
            idle=2.0,
            retries=dice.randint(0, 1),
            canaries=dice.choice([0, 1, 2, 3, 3, 3]),
            rounds=dice.randint(1, 3),
            include_flagged=dice.random() < 0.3,
            max_launches=dice.choice([None, None, None, 2, 5]),
        )

    def tasks(self) -> list[dict[str, Json]]:
        """Return tasks in clusters, each with its canary; some canaries do not exist."""
        dice = self.one("tasks")
        found: list[dict[str, Json]] = []
        first: dict[int, str] = {}
        for number in range(dice.randint(1, 9)):
            cluster, id = dice.randint(0, 3), f"t{number}"
            canary = first.setdefault(cluster, id) if cluster else id
            lost = dice.random() < 0.05
            waits = "nobody" if lost else canary if canary != id else ""
            want = dice.choice(["fix", "fix", "fix", "improve"])
            row: dict[str, Json] = {"task": id, "node_id": f"t.py::{id}", "want": want}
            found.append({**row, "signature": f"s{cluster or id}", "canary": waits})
        return found

    def life(self, order: Order, now: float) -> Life:
        dice = self.one("life", order.task, order.number)
        if order.number == 1 and dice.random() < 0.1:
            return Life(1.0, waiting(f"quota: resets {now + 20:.0f}"))
        return dice.choice(LIVES)

    def verdict(self, task: Task, each: Try) -> Verdict:
        dice = self.one("verdict", task.id, each.number)
        if dice.random() < 0.1:
            raise OSError("the disk is full")
        others = [f"t.py::t{n}" for n in range(9) if dice.random() < 0.3]
        return replace(dice.choice(VERDICTS), turned_green=(task.node_id, *others))

    def outcome(self, *question: object) -> TestRun:
        dice = self.one("outcome", *question)
        told = TestRun("failed", signature=f"s{dice.randint(0, 3)}", exception="E")
        return TestRun("passed") if dice.random() < 0.4 else told


class Trials(SimulatedTrials):
    fate: Fate

    def together(self, fixes: Sequence[Fix], tests: Sequence[str]) -> Mapping[str, TestRun]:
        if self.fate.one("trial", len(fixes)).random() < 0.1:
            raise OSError("no bench")
        return {each: self.fate.outcome(each, len(fixes)) for each in tests}


def staged(folder: Path, fate: Fate) -> Stage:
    stage = Stage(folder, fate.options())
    stage.fleet.life = lambda order: fate.life(order, stage.clock.now())
    stage.inspector.judge = fate.verdict
    stage.trials = trials = Trials()
    trials.fate = fate
    return stage


def select(stage: Stage, fate: Fate) -> None:
    tasks: list[Json] = [*fate.tasks()]
    runs = {str(each["node_id"]): to_json(TestRun("failed")) for each in fate.tasks()}
    stage.note("baseline", results=runs)
    stage.note("selected", tasks=tasks)


def conduct(stage: Stage) -> None:
    conductor = stage.conductor()
    for _ in range(STEPS):
        if conductor.finished:
            return
        conductor.step()
        stage.clock.sleep(1.0)
    raise AssertionError(f"no end: {stage.run.tasks}")


def integrate(stage: Stage, fate: Fate) -> None:
    """Pick some of the accepted changes and evict the others, without git."""
    if stage.run.integrated:
        return
    stage.note("integration_started")
    taken = ranking.accepted(stage.run)
    if stage.run.options.include_flagged:
        taken += ranking.held(stage.run)
    for task, _ in taken:
        if fate.one("pick", task.id, len(task.tries)).random() < 0.6:
            commit = f"{len(stage.run.picks) + 1:040d}"
            pick = Pick("implementation", (task.id,), commit, commit, "s")
            stage.note("picked", pick=to_json(pick))
        else:
            gone = Eviction(task.id, "implementation", "breaks something")
            stage.note("evicted", eviction=to_json(gone))
    stage.note("integrated")


def reopened(stage: Stage, fate: Fate) -> bool:
    run = stage.run
    tried = rounds.to_try(run)
    results = {task.node_id: fate.outcome("tip", run.round, task.id) for task in tried}
    passing: dict[str, Json] = {**rounds.passing(run, results)}
    stage.note("tried", commit=rounds.tip_of(run), passing=passing)
    tasks = rounds.reopened(run)
    if not tasks or over_budget(run, stage.clock.now()):
        return False
    groups = selecting.grouped(run, tasks, {}, results)
    stage.note("round", round=run.round + 1, tip=rounds.tip_of(run), **groups)
    return True


def to_the_end(stage: Stage, fate: Fate) -> int:
    """Run to the end, and return the number of rounds."""
    while True:
        conduct(stage)
        integrate(stage, fate)
        if not reopened(stage, fate):
            return stage.run.round


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_every_run_ends_and_every_test_has_its_ending(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    fate = Fate(seed)
    stage = staged(tmp_path_factory.mktemp("run") / "run", fate)
    select(stage, fate)
    assert to_the_end(stage, fate) <= stage.run.options.rounds
    for task in stage.run.tasks.values():
        assert ranking.ending_of(task) != "unfinished", task
        assert not life.is_open(stage.run, task), task
        assert len(task.tries) <= 3 * stage.run.options.rounds
    held = [task for task, _ in ranking.held(stage.run)]
    assert all(not task.included and task.held for task in held)
    on_branch = {each for pick in stage.run.picks for each in pick.tasks}
    assert not stage.run.options.include_flagged or not on_branch & {task.id for task in held}
    assert sum(ranking.counts(stage.run).values()) == len(stage.run.tasks)
    assert len(stage.fleet.launched) == len(set(stage.fleet.launched))
    stage.close()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32), kills=st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_a_run_that_is_killed_ends_too_and_launches_nothing_twice(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kills: list[int]
) -> None:
    fate = Fate(seed)
    folder = tmp_path_factory.mktemp("run") / "run"
    first = staged(folder, fate)
    select(first, fate)
    first.close()
    stage = first
    for kill in [*kills, 10_000]:
        stage = staged(folder, fate)
        stage.fleet, stage.clock = first.fleet, first.clock
        dying_after(stage, kill)
        try:
            to_the_end(stage, fate)
        except Killed:
            pass
        finally:
            stage.close()
    assert all(ranking.ending_of(task) != "unfinished" for task in stage.run.tasks.values())
    intended = [(e["task"], e["try"]) for e in read(folder) if e["type"] == "try_intended"]
    assert len(intended) == len(set(intended))
    assert len(first.fleet.launched) == len(set(first.fleet.launched))
