"""Launch, read, remind, collect and stop the agents of a run."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mngr.api import Agent, CreateRequest, Mngr, Repo
from mngr.errors import BadRecord, MngrError, Taken, Unreachable
from mngr.model.state import ALIVE, EndKind, State
from mngr_outcome.outcome import Obstacle, Published, cleaned, parse_outcome
from mngr_outcome.publish import scripts
from mngr_tmr.dispatch.artifacts import ARTIFACTS, unpack
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.journal.model import Ended, Outcome, Run, Task, Try
from mngr_tmr.run import runs
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.pool import Pool

METER = 10.0
"""Seconds between two readings of the agents' usage."""
SETTLE = 10.0


class RealFleet:
    def __init__(
        self,
        api: Mngr,
        run: Run,
        folder: Path,
        repo: Repo,
        prompt: Callable[[Task, Try], str],
        pool: Pool,
    ) -> None:
        self._api, self._run, self._folder, self._repo = api, run, folder, repo
        self._prompt, self._pool = prompt, pool
        self._seen: dict[str, Agent] = {}
        """By id, from the last look."""
        self._missing: dict[str, float] = {}
        """By id: when a look first did not find the agent."""
        self._spent: dict[str, Spending] = {}
        self._metered = 0.0
        self._stopper = Stopper(api)

    # launch

    def launch(self, task: Task, each: Try) -> str:
        """Create the agent of an attempt, or adopt it if it exists, and return its id."""
        name = each.agent_name
        try:
            return self._api.create(self._request(task, each)).agent.id
        except MngrError as error:
            if isinstance(error, Unreachable):
                self._pool.lose(name)
            existing = self._settled(name)
            # Created by an earlier process, or just now before something else failed. `--reuse`
            # is not used, because it would start an agent that has ended again.
            if existing is None or not (isinstance(error, Taken) or existing.state in ALIVE):
                self._pool.leave(name)
                raise
            return existing.id

    def _settled(self, name: str) -> Agent | None:
        """Return the agent, once it has started if the process that created it was killed."""
        deadline = time.monotonic() + SETTLE
        while True:
            agent = self._find(name)
            unclear = agent is not None and agent.verdict.ending is EndKind.UNREPORTED
            if not unclear or time.monotonic() > deadline:
                return agent
            time.sleep(0.1)

    def _of(self, each: Try) -> Agent | None:
        """Return the agent of an attempt; without listing all agents if its id is known."""
        if not each.agent_id:
            return self._find(each.agent_name)
        seen = self._seen.get(each.agent_id)
        return seen or next(iter(self._api.list([each.agent_id])), None)

    def _find(self, name: str) -> Agent | None:
        return next((each for each in self._api.list() if each.name == name), None)

    def _request(self, task: Task, each: Try) -> CreateRequest:
        address, prompt = self._pool.address(each.agent_name), self._prompt(task, each)
        asked = request(self._run, address, each.base, prompt, task.id, each.number)
        options = self._run.options
        return asked.replace(
            labels={"tmr": self._run.name, "task": task.id, "role": "tester"},
            max_cost=options.agent_max_cost,
            max_tokens=options.agent_max_tokens,
        )

    # look

    def look(self, tries: Sequence[Try] | None = None) -> Mapping[str, Sighting]:
        """Read each host once. Usage is read less often."""
        ids = None if tries is None else [each.agent_id for each in tries]
        mine = runs.agents(self._api, self._run.name, "tester", ids)
        self._seen = {each.id: each for each in mine}
        self._meter(mine)
        return self._silent(tries or ()) | {each.name: self._sighting(each) for each in mine}

    def _silent(self, tries: Sequence[Try]) -> dict[str, Sighting]:
        """Report missing agents as UNREACHABLE if their host may have failed to answer."""
        if self._run.options.provider in ("", "local"):
            return {}
        missing = [each for each in tries if each.agent_id not in self._seen]
        since = {each.agent_id: self._missing.get(each.agent_id, time.time()) for each in missing}
        self._missing = since
        return {e.agent_name: Sighting("UNREACHABLE", since=since[e.agent_id]) for e in missing}

    def _sighting(self, agent: Agent) -> Sighting:
        return Sighting(
            state=str(agent.state),
            reason=agent.verdict.reason,
            since=agent.verdict.since,
            outcome=agent.evidence.outcome,
            ending=agent.verdict.ending,
            waiting=agent.verdict.waiting,
            spent=self._spent.get(agent.id, Spending()),
        )

    def _meter(self, agents: Sequence[Agent]) -> None:
        if time.monotonic() - self._metered < METER:
            return
        self._metered = time.monotonic()
        self._spent |= self._spending([each for each in agents if each.state in ALIVE])

    def _spending(self, agents: Sequence[Agent]) -> dict[str, Spending]:
        try:
            used = self._api.usage(agents)
        except MngrError:
            return {}  # a host that does not answer is noticed by `look`
        return {
            id: Spending(
                each.tokens.total,
                None if each.unpriced else each.cost,
                each.guarded,
                each.unpriced,
            )
            for id, each in used.items()
        }

    def remind(self, agent_name: str, text: str) -> None:
        publish = '"$MNGR_AGENT_STATE_DIR/publish" --help'
        self._api.message(agent_name, f"{text} Commit your work and publish: see {publish}")

    # collect

    def collect(self, task: Task, each: Try, outcome: Outcome, reason: str) -> Ended:
        """Fetch commits, then artifacts and usage. Only then stop the agent."""
        agent = self._of(each)
        if agent is None:
            return Ended(outcome, reason)
        published = _published(agent)
        ended = self._with_commits(agent, each, task, _said(published, outcome, reason))
        folder = self._artifacts(agent, task, each)
        spent = self._spending([agent]).get(agent.id, Spending())
        return self._stopped(agent, each, replace(ended, artifacts=folder, spent=spent))

    def _stopped(self, agent: Agent, each: Try, ended: Ended) -> Ended:
        try:
            self._stopper.stop(agent)
        except Exception as error:  # its work has been collected
            told = f"{ended.reason}; the agent could not be stopped: {' '.join(str(error).split())}"
            ended = replace(ended, reason=told.strip("; "))
        if agent.host_stopped or agent.state is State.UNREACHABLE:
            self._pool.lose(each.agent_name)
        self._pool.leave(each.agent_name)
        seconds = max(0.0, time.time() - (each.launched or each.intended))
        return replace(ended, seconds=round(seconds, 1))

    def _with_commits(self, agent: Agent, each: Try, task: Task, ended: Ended) -> Ended:
        head = ended.head or self._tip(agent)
        if not head or head == each.base:
            return replace(ended, head=head or each.base)
        ref = f"refs/mngr/tmr/{self._run.name}/{task.id}/{each.number}"
        try:
            self._api.bring(agent, head, ref, cwd=self._run.repository)
        except MngrError as error:
            told = f"{ended.reason}; its commit {head[:12]} could not be fetched: {error.message}"
            return replace(ended, outcome=Outcome.NO_RESULT, reason=told.strip("; "))
        return replace(ended, head=head, ref=ref)

    def _tip(self, agent: Agent) -> str:
        try:
            done = self._api.exec(agent, ["git", "rev-parse", "HEAD"], timeout=60)
        except MngrError:
            return ""
        return done.stdout.decode("utf-8", "replace").strip() if done.exit_code == 0 else ""

    def _artifacts(self, agent: Agent, task: Task, each: Try) -> str:
        """Fetch the artifacts of the agent's test runs, and its conversation; return the folder."""
        name = f"artifacts/{task.id}/{each.number}"
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if _may_have_artifacts(agent):
                listing = os.path.join(agent.folder, ".artifacts")
                argv = ["sh", "-c", ARTIFACTS, "mngr", listing]
                done = self._api.exec(agent, argv, timeout=300)
                unpack(done.stdout, folder)
            turns = [turn.to_json() for turn in self._api.transcript(agent)]
        except MngrError as error:
            (folder / "missing.txt").write_text(cleaned(str(error)) + "\n")
            return name
        if turns:
            (folder / "conversation.json").write_text(json.dumps(turns))
        return name


def request(
    run: Run, address: str, base: str, prompt: str, task: str, number: int
) -> CreateRequest:
    """Return the request for an agent in a clone at `base`, which publishes its outcome."""
    options = run.options
    variables = {"MNGR_TMR_TASK": task, "MNGR_TMR_TRY": str(number)}
    return CreateRequest(
        address=address,
        provider=options.provider,
        type=options.agent_type,
        args=options.agent_args,
        message=prompt,
        source=run.repository,
        transfer="git-mirror",
        branch=f"{base}:mngr/{address.partition('@')[0]}",
        committed_only=True,
        scripts=scripts(),
        env={**dict(options.agent_env), **variables},
        timeout=options.agent_timeout,
    )


def _may_have_artifacts(agent: Agent) -> bool:
    """Return whether there are artifacts, without running a program if the host is local."""
    return not agent.shares_files or os.path.isdir(os.path.join(agent.record.work_dir, ".mngr-e2e"))


def _published(agent: Agent) -> Published | None:
    try:
        return parse_outcome(agent.evidence.outcome) if agent.evidence.outcome else None
    except BadRecord:
        return None


def _said(published: Published | None, outcome: Outcome, reason: str) -> Ended:
    """Return the agent's claims, which have not been verified."""
    if published is None:
        return Ended(outcome, cleaned(reason, 2000))
    claims = {"fix": Outcome.FIXED, "improve": Outcome.IMPROVED, "none": Outcome.UNCHANGED}
    claimed = claims[published.attempted]
    blocked = published.blocked
    return Ended(
        outcome=Outcome.BLOCKED if blocked else claimed,
        reason=blocked.reason if blocked else "",
        head=published.head,
        summary=published.summary,
        needs=blocked.needs if blocked else "",
        obstacle=blocked.obstacle if blocked else Obstacle.MISSING,
        tests_added=published.tests_added,
        confusing=tuple((c.command, c.tried, c.happened) for c in published.confusing),
    )


class Stopper:
    """Stops agents that end at the same time in one call, which costs as much as a single stop.

    While one stop is in progress, further agents wait, and the next stop is for all of them.
    """

    def __init__(self, api: Mngr) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[Agent] = []
        self._failed: dict[str, Exception] = {}

    def stop(self, agent: Agent) -> None:
        """Return when the agent is stopped."""
        with self._lock:
            self._waiting.append(agent)
        with self._turn:
            with self._lock:
                chosen, self._waiting = self._waiting, []
            if chosen:
                self._stop(chosen)
            failure = self._failed.pop(agent.id, None)
        if failure is not None:
            raise failure

    def _stop(self, chosen: list[Agent]) -> None:
        """Stop them as a new reading shows them: some may have ended meanwhile."""
        try:
            self._api.stop_many(self._api.list([each.id for each in chosen]))
        except Exception as error:  # raised again in the thread that waits
            if len(chosen) == 1:
                self._failed[chosen[0].id] = error
                return
            for each in chosen:  # so that one failure does not affect the others
                self._stop([each])
