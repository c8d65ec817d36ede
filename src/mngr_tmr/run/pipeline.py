"""collect -> baseline -> select -> dispatch -> gather -> verify -> integrate -> publish.

Each stage reads the run, which is computed from its journal, and does what is missing. So the same
call starts a run, continues a killed one, and does nothing for a finished one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mngr.api import Mngr, Repo
from mngr.model.struct import Json
from mngr_outcome.codec import to_json
from mngr_tmr.dispatch import life, orders
from mngr_tmr.dispatch.agents import RealFleet
from mngr_tmr.dispatch.conductor import Conductor
from mngr_tmr.dispatch.roles import Inbox
from mngr_tmr.dispatch.throttle import over_budget
from mngr_tmr.dispatch.trials import RealTrials
from mngr_tmr.integrate import branches, messages
from mngr_tmr.integrate.integrate import Integration
from mngr_tmr.integrate.resolving import Resolver
from mngr_tmr.journal.fold import apply, fold
from mngr_tmr.journal.journal import Journal, read
from mngr_tmr.journal.model import Run, Task, TestRun, Try
from mngr_tmr.run import clustering, coverage, prompting, publishing, rounds, selecting
from mngr_tmr.run.baseline import Baselining
from mngr_tmr.run.clustering import Lines
from mngr_tmr.run.forecast import forecast
from mngr_tmr.run.pool import Pool
from mngr_tmr.run.settings import ProjectSettings
from mngr_tmr.verify import patches
from mngr_tmr.verify.bench import Bench
from mngr_tmr.verify.verify import RealInspector

TICK = 0.25
LOOK = 0.1
"""Seconds between two looks at the agents; an idle slot waits for half of it on average."""
THREADS = 64
"""Maximum number of threads, created when needed: `retune` may raise the number of agents."""

Watch = Callable[[Run], None]


class CancelledEarly(Exception):
    """The run was cancelled before its first agent."""


class RealClock:
    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class Pipeline:
    """The process that works on a run, and the only writer of its journal."""

    def __init__(
        self,
        api: Mngr,
        folder: Path,
        journal: Journal,
        repo: Repo,
        project: ProjectSettings,
        *,
        watch: Watch,
        inbox: Inbox,
    ) -> None:
        self.run = fold(read(folder))
        self._api, self._folder, self._journal = api, folder, journal
        self._repo, self._project = repo, project
        self._watch, self._inbox = watch, inbox
        self._lock = threading.Lock()
        self._sources: dict[tuple[str, str], str] = {}
        options = self.run.options
        self._pool = Pool(api, self.run)
        self._bench = Bench(
            *(api, self.run.repository, self.run.name, folder, project, options),
            self._pool.address,
        )
        self._baselining = Baselining(
            self.run, self._bench, folder, self.note, float(project.check_timeout)
        )

    def note(self, type: str, fields: Mapping[str, Json]) -> None:
        with self._lock:  # a stage and the thread that watches it may both write
            apply(self.run, self._journal.append(type, fields))

    def go(self, *, confirm: Callable[[Run], bool] = lambda run: True) -> Run:
        """Run all stages, or stop if `confirm` declines to start agents."""
        try:
            self._bench.sweep()
            before = self._baselining
            for stage in (before.collect, before.measure, before.weigh):
                self._minding(stage)
            self._select()
            self._forecast()
            self._watch(self.run)
            if not confirm(self.run):
                return self.run
            if not self.run.consent:
                self.note("agreed", {})
                coverage.keep_files(self._api.home, self.run, self._baselining.touched)
            self._rounds()
            self._finish()
        except CancelledEarly:
            self.note("run_ended", {"status": "cancelled", "branch": ""})
        finally:
            self._close()
        return self.run

    def _close(self) -> None:
        """End the hosts of the run, unless it can be resumed: its agents work there."""
        self._bench.close()
        if self.run.status or not self.run.consent:
            self._pool.close(self.note)

    def integrate_again(self) -> Run:
        """Build the branch again, with the outcomes that agents have published since."""
        try:
            self._bench.sweep()
            self._take_in()
            self._dispatch(launches=False)
            self._integrate(again=True)
            self._at_the_tip()
            self._finish(again=True)
        finally:
            self._close()
        return self.run

    def _minding(self, stage: Callable[[], None]) -> None:
        """Run a stage without agents in a thread, and obey orders meanwhile."""
        with ThreadPoolExecutor(max_workers=1) as executor, self._ending_checks(executor):
            work = executor.submit(stage)
            while not wait([work], TICK).done:
                self._obey()
                self._watch(self.run)
                if self.run.cancelled:
                    self._bench.close()  # this ends the checks, and with them the stage
                    break
            if self.run.cancelled and not self.run.tasks:
                wait([work])
                raise CancelledEarly
            work.result()

    @contextmanager
    def _ending_checks(self, executor: Executor) -> Iterator[None]:
        """Stop the checks on an interrupt instead of waiting for them."""
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
        """End an attempt again if its agent has published since it was collected."""
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
        return RealFleet(self._api, self.run, self._folder, self._repo, self._prompt, self._pool)

    # before any agent

    def _select(self) -> None:
        if self.run.selected:
            return
        known = self._known_files() if self.run.options.only == "changed" else {}
        selection = selecting.select(self.run, coverage.changed(self.run, self._repo, known))
        groups = selecting.grouped(self.run, selection.tasks, self._reached())
        self.note("selected", {**groups, "left_out": {**selection.left_out}})

    def _known_files(self) -> coverage.Files:
        return coverage.load_files(self._api.home, self.run.repository)

    def _forecast(self) -> None:
        """Journal the forecast before the user confirms it."""
        if not self.run.tasks or self.run.tries:
            return
        metered = self._api.metered(self.run.options.agent_type)
        home = self._api.home
        made = forecast(self.run, home, metered=metered, host_rate=self._pool.rate)
        found = replace(made, hosts=self._pool.existing)
        if found != self.run.forecast:
            self.note("forecast", {"forecast": to_json(found)})

    # agents

    def _rounds(self) -> None:
        """Run agents and build the branch, again for tests that still fail at its tip."""
        while not self._is_over():
            self._dispatch()
            self._integrate()
            results = self._at_the_tip()
            if not self._reopen(results):
                return

    def _is_over(self) -> bool:
        """Return whether the run has ended, and not by `integrate` with agents still to start."""
        left = any(life.is_open(self.run, task) for task in self.run.tasks.values())
        return bool(self.run.status) and (self.run.cancelled or not left)

    def _at_the_tip(self) -> dict[str, TestRun]:
        """Run every test that is not known to pass at the tip of the branch."""
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
        self.note("round", {"round": self.run.round + 1, "tip": tip, **groups})
        return True

    def _reached(self) -> dict[str, Lines]:
        """Return the measured lines of the implementation that each test executes."""
        lines = coverage.load(self._folder)
        return clustering.reached(lines, self.run.tests, self._project.is_implementation)

    def _trials(self) -> RealTrials:
        return RealTrials(self.run, self._repo, self._bench, self._folder / "scratch")

    def _dispatch(self, *, launches: bool = True) -> None:
        fleet = self._fleet()
        scratch = self._folder / "scratch"
        known = self._known_files().items()
        needs = {test: files for test, (commit, files) in known if commit == self.run.base}
        inspector = RealInspector(
            self.run, self._repo, self._bench, self._project, scratch, needs, self._reached()
        )
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

    def _prompt(self, task: Task, each: Try) -> str:
        place = each.base, task.node_id.partition("::")[0]
        if place not in self._sources:
            self._sources[place] = patches.show(self._repo, *place) or ""
        return prompting.tester(self.run, self._project, task, self._sources[place])

    # the branch

    def _integrate(self, *, again: bool = False) -> None:
        if self.run.integrated and not again:
            return
        scratch = self._folder / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        resolver = Resolver(self._api, self.run, self._repo, self._project, scratch, self._pool)
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
        if not self._pool.active:  # the run's own hosts are ended with all their agents
            publishing.tidy(self._api, self.run)
        self.note("run_ended", {"status": publishing.status(self.run), "branch": branch})
        self._watch(self.run)
