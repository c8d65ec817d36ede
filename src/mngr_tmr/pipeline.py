"""collect -> baseline -> select -> dispatch -> gather -> verify -> integrate -> publish.

Each stage looks at the run, which is the fold of its journal, and does what is missing. So the
same call begins a run, goes on with a killed one, and finds nothing to do in a finished one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from mngr.api import Mngr
from mngr.errors import MngrError
from mngr.git import Repo
from mngr.struct import Json
from mngr_tmr import (
    branches,
    clustering,
    forecasting,
    messages,
    orders,
    patches,
    prompting,
    ranking,
    reaching,
    retrying,
    rounds,
    selecting,
    touching,
)
from mngr_tmr.bench import Bench, Check
from mngr_tmr.clustering import Lines
from mngr_tmr.codec import to_json
from mngr_tmr.conductor import Conductor
from mngr_tmr.fleet import RealFleet
from mngr_tmr.fold import apply, fold
from mngr_tmr.integrate import Integration
from mngr_tmr.journal import Journal, read
from mngr_tmr.model import Ruling, Run, TestRun
from mngr_tmr.patches import show
from mngr_tmr.resolving import Resolver
from mngr_tmr.roles import Inbox, Order
from mngr_tmr.settings import Project
from mngr_tmr.throttle import over_budget
from mngr_tmr.trying import RealTrials
from mngr_tmr.verify import RealInspector

TICK = 0.25
LOOK = 0.1
"""Seconds between two looks at the agents: half of it is what an idle slot waits on average."""

THREADS = 64
"""At most, and made as they are needed: `retune` may ask for more agents than there were."""

Watch = Callable[[Run], None]


class Cancelled(Exception):
    """By somebody outside, before there were any agents."""


class RealClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Pipeline:
    """One process at work on one run; it holds the journal open as its only writer."""

    def __init__(
        self,
        api: Mngr,
        folder: Path,
        journal: Journal,
        repo: Repo,
        project: Project,
        *,
        watch: Watch,
        inbox: Inbox,
    ) -> None:
        self.run = fold(read(folder))
        self._api, self._folder, self._journal = api, folder, journal
        self._repo, self._project = repo, project
        self._watch, self._inbox = watch, inbox
        self._lock = threading.Lock()
        self._touched: dict[str, tuple[str, ...] | None] = {}
        self._lines: dict[str, Mapping[str, str]] = {}
        self._sources: dict[tuple[str, str], str] = {}
        self._bench = Bench(
            api, self.run.repository, self.run.name, folder, project, self.run.options
        )

    def note(self, type: str, fields: Mapping[str, Json]) -> None:
        with self._lock:  # a stage at work and whoever minds it may both have something to say
            apply(self.run, self._journal.append(type, fields))

    def go(self, *, confirm: Callable[[Run], bool] = lambda run: True) -> Run:
        """To the end, or to where `confirm` says no, once it is known what will be launched."""
        try:
            self._bench.sweep()
            for stage in (self._collect, self._baseline, self._weigh):
                self._minding(stage)
            self._select()
            self._foresee()
            self._watch(self.run)
            if not confirm(self.run):
                return self.run
            if not self.run.consent:
                self.note("agreed", {})
                touching.keep(self._api.world.home, self.run, self._touched)
            self._rounds()
            self._finish()
        except Cancelled:
            self.note("run_ended", {"status": "cancelled", "branch": ""})
        finally:
            self._bench.close()
        return self.run

    def integrate_again(self) -> Run:
        """The branch anew; agents that a human helped and that published since are taken in."""
        try:
            self._bench.sweep()
            self._take_in()
            self._dispatch(launches=False)
            self._integrate(again=True)
            self._at_the_tip()
            self._finish(again=True)
        finally:
            self._bench.close()
        return self.run

    def _minding(self, stage: Callable[[], None]) -> None:
        """A stage without agents, which may take long, while orders and the view go on."""
        with ThreadPoolExecutor(max_workers=1) as executor, self._ending_checks(executor):
            work = executor.submit(stage)
            while not wait([work], TICK).done:
                self._obey()
                self._watch(self.run)
                if self.run.cancelled:
                    self._bench.close()  # ends what runs there, and so the stage
                    break
            if self.run.cancelled and not self.run.tasks:
                wait([work])
                raise Cancelled
            work.result()

    @contextmanager
    def _ending_checks(self, executor: Executor) -> Iterator[None]:
        """Whoever interrupts us does not want to wait for what runs there, which may be long."""
        try:
            yield
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            self._bench.close()
            raise

    def _obey(self) -> None:
        orders.obey(self.run, self.note, self._journal.sync, self._inbox)

    def _note_and_obey(self, type: str, fields: Mapping[str, Json]) -> None:
        self.note(type, fields)
        self._obey()
        self._watch(self.run)

    def _take_in(self) -> None:
        """A try whose agent has another outcome than the one collected ends anew."""
        fleet = self._fleet()
        seen = fleet.look()
        for task in self.run.tasks.values():
            latest = task.latest
            sighting = seen.get(latest.agent_name) if latest else None
            if latest is None or latest.ended is None or sighting is None or not sighting.outcome:
                continue
            ended = fleet.collect(task, latest, latest.ended.outcome, latest.ended.reason)
            if (ended.head, ended.outcome) != (latest.ended.head, latest.ended.outcome):
                told: dict[str, Json] = {"task": task.id, "try": latest.number}
                self.note("try_ended", {**told, "ended": to_json(ended)})

    def _fleet(self) -> RealFleet:
        return RealFleet(self._api, self.run, self._folder, self._repo, self._prompt)

    # before any agent

    def _collect(self) -> None:
        if self.run.collected:
            return
        checked = self._bench.check(Check("collect", self.run.base, collect_only=True))
        if not checked.tests:
            told = checked.errors[0] if checked.errors else checked.told.strip()[-300:]
            raise MngrError(f"no tests were collected: {told or 'pytest found none'}")
        if checked.bare:
            told = f"baseline, verification and gates run without a sandbox: {checked.bare}"
            self.note("alert", {"text": told})
        tests: list[Json] = [to_json(test) for test in checked.tests.values()]
        self.note("collected", {"tests": tests, "errors": [*checked.errors]})

    def _baseline(self) -> None:
        while self.run.rounds < max(1, self.run.options.repeats):
            first = self.run.rounds == 0
            results = self._round(traced=first)
            if first:
                reaching.keep(self._folder, self._lines)
            missing = {n: to_json(TestRun("missing")) for n in self.run.tests if n not in results}
            self.note("baseline", {"results": {**results, **missing}})

    def _round(self, *, traced: bool) -> dict[str, Json]:
        """Each test once. What comes after one that ends pytest itself is run without it."""
        results: dict[str, Json] = {}
        left = [*self.run.tests]
        while left:
            checks = self._bench.check_all("baseline", self.run.base, left, traced=traced)
            if any(checked.timed_out for checked in checks):
                told = f"the baseline took longer than {self._project.check_timeout} s"
                raise MngrError(told, "raise check_timeout under [tool.mngr_tmr]")
            for checked in checks:
                results |= {node: to_json(run) for node, run in checked.runs.items()}
                self._touched.update(checked.touched)
                self._lines |= checked.lines
            cut_short = not all(checked.finished for checked in checks)
            some = any(checked.runs for checked in checks)
            left = [each for each in left if each not in results] if cut_short and some else []
        return results

    def _weigh(self) -> None:
        """Once more with commands that do nothing: what still passes proves nothing."""
        if self.run.weighed or self.run.options.only not in ("weak", "needy"):
            return
        passing = [n for n, each in self.run.baseline.items() if each.standing == "passed"]
        weak: list[Json] = []
        for checked in self._bench.check_all("no-op", self.run.base, passing, noop=True):
            weak += [node for node, run in checked.runs.items() if run.outcome == "passed"]
        self.note("weighed", {"weak": weak})

    def _select(self) -> None:
        if self.run.selected:
            return
        home = self._api.world.home
        known = (
            touching.load(home, self.run.repository) if self.run.options.only == "changed" else {}
        )
        selection = selecting.select(self.run, touching.changed(self.run, self._repo, known))
        for node_id, reason in selection.left_out.items():
            apply(
                self.run,
                self._journal.append("skipped", {"node_id": node_id, "reason": reason}, sync=False),
            )
        groups = selecting.grouped(self.run, selection.tasks, self._reached())
        self.note("selected", groups.to_json())

    def _foresee(self) -> None:
        """Written down before anybody agrees to it; from then on it is what was said."""
        if not self.run.tasks or self.run.tries:
            return
        metered = bool(self._api.world.agent_type(self.run.options.agent_type).meter())
        forecast = forecasting.forecast(self.run, self._api.world.home, counted=metered)
        if forecast != self.run.forecast:
            self.note("forecast", {"forecast": to_json(forecast)})

    # agents

    def _rounds(self) -> None:
        """Agents, then the branch, then once more for what still fails at its tip."""
        while not self._is_over():
            self._dispatch()
            self._integrate()
            results = self._at_the_tip()
            if not self._reopen(results):
                return

    def _is_over(self) -> bool:
        """A run that ended, unless `integrate` ended it while there was still work to do."""
        left = any(retrying.is_open(self.run, task) for task in self.run.tasks.values())
        return bool(self.run.status) and (self.run.cancelled or not left)

    def _at_the_tip(self) -> dict[str, TestRun]:
        """Every test that is not known to pass is tried on the branch as it is now."""
        tasks = [] if self.run.cancelled else rounds.to_try(self.run)
        results: dict[str, TestRun] = {}
        tip = rounds.tip_of(self.run)
        left = [task.node_id for task in tasks]
        for _ in range(max(1, self.run.options.repeats)):
            found = self._trials().results("at the tip", tip, left) if left else {}
            results |= found
            left = [n for n in left if n in found and found[n].outcome == "passed"]
        passing: dict[str, Json] = {**rounds.passing(self.run, results)}
        if tasks:
            self.note("tried", {"commit": tip, "passing": passing})
        return results

    def _reopen(self, results: Mapping[str, TestRun]) -> bool:
        tip = rounds.tip_of(self.run)
        moved = {each.path for each in patches.changes(self._repo, self.run.base, tip)}
        tasks = rounds.reopened(self.run, moved)
        if not tasks or over_budget(self.run, time.time()):
            return False
        groups = selecting.grouped(self.run, tasks, self._reached(), results)
        self.note("round", {"round": self.run.round + 1, "tip": tip, **groups.to_json()})
        return True

    def _reached(self) -> dict[str, Lines]:
        """What each test runs of the implementation, as far as it was measured."""
        lines = reaching.load(self._folder)
        return clustering.reached(lines, self.run.tests, self._project.is_implementation)

    def _trials(self) -> RealTrials:
        return RealTrials(self.run, self._repo, self._bench, self._folder / "scratch")

    def _dispatch(self, *, launches: bool = True) -> None:
        fleet = self._fleet()
        scratch = self._folder / "scratch"
        known = touching.load(self._api.world.home, self.run.repository)
        needs = {test: files for test, (commit, files) in known.items() if commit == self.run.base}
        inspector = RealInspector(self.run, self._repo, self._bench, self._project, scratch, needs)
        with (
            ThreadPoolExecutor(max_workers=THREADS) as executor,
            self._ending_checks(executor),
        ):
            conductor = Conductor(
                self.run,
                self._journal,
                fleet,
                inspector,
                self._trials(),
                RealClock(),
                executor,
                self._inbox,
                launches=launches,
            )
            conductor.conduct(LOOK, self._watch)

    def _prompt(self, order: Order) -> str:
        place = order.base, order.node_id.partition("::")[0]
        if place not in self._sources:
            self._sources[place] = show(self._repo, *place) or ""
        source = self._sources[place]
        return prompting.tester(self.run, self._project, order, source)

    # the branch

    def _integrate(self, *, again: bool = False) -> None:
        if self.run.integrated and not again:
            return
        scratch = self._folder / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        resolver = Resolver(self._api, self.run, self._repo, self._project, scratch)
        integration = Integration(
            self.run, self._repo, self._bench, scratch, self._note_and_obey, resolver.resolve
        )
        integration.integrate()
        self.note("integrated", {})

    def _finish(self, *, again: bool = False) -> None:
        if self.run.status and not again:
            return
        tip = rounds.tip_of(self.run)
        branch = branches.publish(self._repo, self.run, tip, self.note)
        title, body = messages.pull_request(self.run)
        (self._folder / "pull-request.md").write_text(f"# {title}\n\n{body}", encoding="utf-8")
        self._tidy()
        self.note("run_ended", {"status": status(self.run), "branch": branch})
        self._watch(self.run)

    def _tidy(self) -> None:
        """Agents whose work is on the branch, or was not needed, go; others wait for a human."""
        settled = (Ruling.ACCEPTED, Ruling.UNCHANGED)
        evicted = {each.task for each in self.run.evictions}
        done = {
            each.agent_name
            for task in self.run.tasks.values()
            for each in task.tries
            if each.verdict is not None
            and each.verdict.ruling in settled
            and task.id not in evicted
        }
        mine = [agent for agent in self._api.list() if agent.name in done]
        if mine:
            bury = self._api.destroy_many(mine, drop_branch=True)
            for agent in mine:
                bury(agent)


def status(run: Run) -> str:
    """Said by counting: a run in which everything failed has failed."""
    counts = ranking.counts(run)
    if run.cancelled:
        return "cancelled"
    if run.picks:
        return "done"
    if not run.tasks or all(word in ranking.WELL for word in counts):
        return "nothing to do"
    return "failed"
