"""The testing agents of a run, through mngr's public API."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from mngr.api import Agent, CreateRequest, Mngr, Repo
from mngr.errors import BadRecord, MngrError, Taken, Unreachable
from mngr.model.state import ALIVE, State
from mngr_outcome.outcome import Outcome as Published
from mngr_outcome.outcome import cleaned, parse_outcome
from mngr_outcome.publish import scripts
from mngr_tmr.dispatch.judging import Sighting
from mngr_tmr.dispatch.roles import Order
from mngr_tmr.dispatch.stopping import Stopper
from mngr_tmr.journal.model import Ended, Outcome, Run, Task, Try
from mngr_tmr.run.costs import Spending
from mngr_tmr.run.pool import Pool

METER = 10.0
"""Seconds between two looks at what the agents have spent."""
SETTLE = 10.0
FILE_LIMIT, TOTAL_LIMIT, COUNT_LIMIT = 4 << 20, 64 << 20, 5000

# Only plain files, none too large, not too many: an agent decides what lies there. A name of two
# lines would be two names to tar.
ARTIFACTS = r"""
[ -d .mngr-e2e ] && [ ! -L .mngr-e2e ] || exit 0
find .mngr-e2e -type f -size -FILEk ! -path '*
*' | head -n COUNT > "$1" || exit 0
tar -cf - -T "$1" 2>/dev/null | head -c TOTAL
rm -f "$1"
""".replace("FILE", str(FILE_LIMIT >> 10)).replace("COUNT", str(COUNT_LIMIT))
ARTIFACTS = ARTIFACTS.replace("TOTAL", str(TOTAL_LIMIT))


class RealFleet:
    def __init__(
        self,
        api: Mngr,
        run: Run,
        folder: Path,
        repo: Repo,
        prompt: Callable[[Order], str],
        pool: Pool | None = None,
    ) -> None:
        self._pool = pool or Pool(api, run)
        self._api, self._run, self._folder, self._repo = api, run, folder, repo
        self._prompt = prompt
        self._seen: dict[str, Agent] = {}
        """By id, as the last look found them."""
        self._missing: dict[str, float] = {}
        """By id, since when a look does not find them."""
        self._spent: dict[str, Spending] = {}
        self._metered = 0.0
        self._collected: dict[str, Agent] = {}
        """By name, as they were when they were collected; they are still to be stopped."""
        self._stopper = Stopper(api)

    # launch

    def launch(self, order: Order) -> str:
        """`--reuse` would start an ended agent again; a replay must leave it as it is."""
        try:
            return self._api.create(self._request(order)).agent.id
        except MngrError as error:
            if isinstance(error, Unreachable):
                self._pool.lose(order.agent_name)
            existing = self._settled(order.agent_name)
            # Made by an earlier process (what that left half-made, create clears itself), or
            # just now, before something else went wrong: not to be forgotten while it works.
            if existing is None or not (isinstance(error, Taken) or existing.state in ALIVE):
                self._pool.leave(order.agent_name)
                raise
            return existing.id

    def _settled(self, name: str) -> Agent | None:
        """Of a killed process we may find an agent whose terminal is there and that is not yet."""
        deadline = time.monotonic() + SETTLE
        while True:
            agent = self._find(name)
            unclear = agent is not None and agent.verdict.reason == "killed before it could report"
            if not unclear or time.monotonic() > deadline:
                return agent
            time.sleep(0.1)

    def _of(self, each: Try) -> Agent | None:
        """Without a look at all the others, where its id is known."""
        if not each.agent_id:
            return self._find(each.agent_name)
        seen = self._seen.get(each.agent_id)
        return seen or next(iter(self._api.list([each.agent_id])), None)

    def _find(self, name: str) -> Agent | None:
        return next((each for each in self._api.list() if each.name == name), None)

    def _request(self, order: Order) -> CreateRequest:
        options = self._run.options
        limits = options.agent_budget
        minutes = limits.minutes
        timeout = min(options.agent_timeout, minutes * 60 if minutes else options.agent_timeout)
        return CreateRequest(
            address=self._pool.address(order.agent_name),
            provider=options.provider,
            type=options.agent_type,
            args=options.agent_args,
            message=self._prompt(order),
            source=self._run.repository,
            transfer="git-mirror",
            branch=f"{order.base}:mngr/{order.agent_name}",
            committed_only=True,
            scripts=scripts(),
            labels={"tmr": self._run.name, "task": order.task, "role": "tester"},
            env={
                **dict(options.agent_env),
                "MNGR_TMR_TASK": order.task,
                "MNGR_TMR_TRY": str(order.number),
            },
            timeout=timeout,
            max_cost=limits.cost,
            max_tokens=limits.tokens,
        )

    # look

    def look(self, tries: Sequence[Try] | None = None) -> Mapping[str, Sighting]:
        """One reading of each host; what was spent is asked for less often."""
        ids = None if tries is None else [each.agent_id for each in tries]
        mine = [each for each in self._api.list(ids) if self._is_mine(each)]
        self._seen = {each.id: each for each in mine}
        self._meter(mine)
        return self._silent(tries or ()) | {each.name: self._sighting(each) for each in mine}

    def _silent(self, tries: Sequence[Try]) -> dict[str, Sighting]:
        """An agent that is not in a reading is gone here; elsewhere its host may just be silent."""
        if self._run.options.provider in ("", "local"):
            return {}
        missing = [each for each in tries if each.agent_id not in self._seen]
        since = {each.agent_id: self._missing.get(each.agent_id, time.time()) for each in missing}
        self._missing = since
        return {e.agent_name: Sighting("UNREACHABLE", since=since[e.agent_id]) for e in missing}

    def _is_mine(self, agent: Agent) -> bool:
        record = agent.evidence.record
        if record is None or record.labels.get("tmr") != self._run.name:
            return False
        return record.labels.get("role") == "tester"

    def _sighting(self, agent: Agent) -> Sighting:
        return Sighting(
            state=str(agent.state),
            reason=agent.verdict.reason,
            since=agent.verdict.since,
            outcome=agent.evidence.outcome,
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
            return {}  # a silent host is noticed by what it does not say
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
        """Commits first, then artifacts: `stop` comes afterwards, never the other way round."""
        agent = self._of(each)
        if agent is None:
            return Ended(outcome, reason)
        self._collected[each.agent_name] = agent
        published = _published(agent)
        ended = self._with_commits(agent, each, task, _said(published, outcome, reason))
        folder = self._artifacts(agent, task, each)
        spent = self._spending([agent]).get(agent.id, Spending())
        return replace(ended, artifacts=folder, spent=spent)

    def stop(self, each: Try, ended: Ended) -> Ended:
        agent = self._collected.pop(each.agent_name, None)
        if agent is None:
            return ended
        try:
            self._stopper.stop(agent)
        except Exception as error:  # its work is here all the same
            message = (
                error.message if isinstance(error, MngrError) else " ".join(str(error).split())
            )
            told = f"{ended.reason}; it could not be stopped: {message}"
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
            told = f"{ended.reason}; its commit {head[:12]} could not be brought: {error.message}"
            return replace(ended, outcome=Outcome.NO_RESULT, reason=told.strip("; "))
        return replace(ended, head=head, ref=ref)

    def _tip(self, agent: Agent) -> str:
        try:
            done = self._api.exec(agent, ["git", "rev-parse", "HEAD"], timeout=60)
        except MngrError:
            return ""
        return done.stdout.decode("utf-8", "replace").strip() if done.exit_code == 0 else ""

    def _artifacts(self, agent: Agent, task: Task, each: Try) -> str:
        """What the agent's own runs of the tests left, and its conversation."""
        name = f"artifacts/{task.id}/{each.number}"
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if _may_have_artifacts(agent):
                listing = os.path.join(agent.host.home, "agents", agent.id, ".artifacts")
                argv = ["sh", "-c", ARTIFACTS, "mngr", listing]
                done = self._api.exec(agent, argv, timeout=300)
                unpack(done.stdout, folder)
            turns = [turn.to_json() for turn in self._api.transcript(agent)]
        except MngrError as error:
            (folder / "missing.txt").write_text(cleaned(str(error)) + "\n")
            return name
        if turns:
            import json

            (folder / "conversation.json").write_text(json.dumps(turns))
        return name


def _may_have_artifacts(agent: Agent) -> bool:
    """Where its paths are ours, a look saves two programs."""
    shared = agent.host.capabilities.shares_files
    return not shared or os.path.isdir(os.path.join(agent.record.work_dir, ".mngr-e2e"))


def _published(agent: Agent) -> Published | None:
    try:
        return parse_outcome(agent.evidence.outcome) if agent.evidence.outcome else None
    except BadRecord:
        return None


def _said(published: Published | None, outcome: Outcome, reason: str) -> Ended:
    """What the agent claims; nothing of it is believed yet."""
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
        tests_added=published.tests_added,
        confusing=tuple((c.command, c.tried, c.happened) for c in published.confusing),
    )


def unpack(data: bytes, folder: Path) -> int:
    """Plain files with plain names below `folder`; a torn or hostile rest is left out."""
    written = 0
    room = TOTAL_LIMIT
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for member in archive:
                if written >= COUNT_LIMIT or not 0 <= member.size <= min(FILE_LIMIT, room):
                    continue
                if _is_plain(member) and _unpacked(archive, member, folder):
                    written += 1
                    room -= member.size
    except (tarfile.TarError, EOFError, ValueError, OverflowError):
        pass  # what came before it is kept
    return written


def _is_plain(member: tarfile.TarInfo) -> bool:
    path = PurePosixPath(member.name)
    if not member.isfile() or path.is_absolute() or ".." in path.parts:
        return False
    return 0 < len(path.parts) <= 12 and "\0" not in member.name


def _unpacked(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> bool:
    """A name that this machine does not take is that one file's loss."""
    target = folder.joinpath(*PurePosixPath(member.name).parts)
    content = archive.extractfile(member)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read() if content else b"")
    except (OSError, UnicodeEncodeError):
        return False
    return True
