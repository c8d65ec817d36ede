"""Start agents with a prompt, and wait for the file with which each reports its result.

Agents cost money. Whatever happens here, including Ctrl-C, none of them is left running.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mngr.api import Agent, CreateRequest, Mngr, State, checkout, local_repository, normalise
from mngr.cli.app.main import parsed
from mngr.cli.app.output import clean, say, warn
from mngr.cli.app.parser import Namespace
from mngr.cli.commands.create_options import request
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.model.state import ALIVE, ENDED
from mngr_outcome.publish import scripts

PAUSE = 0.2
BACKSTOP = 60.0
"""Seconds after our own deadline at which an agent is stopped, even if we were killed."""

INCAPABLE = ("command", "mechanic")
"""Types that cannot read a prompt; the mechanic only repairs failing tests."""


@dataclass(frozen=True)
class Errand:
    """The file that every agent must write."""

    file: str
    """Its name in the state directory; written by rename at the end."""
    limit: int
    """Its maximum size in bytes."""
    reminder: str
    """Sent once to an agent that waits without having written its file."""
    parse: Callable[[bytes], object]
    """Raises a MngrError if the content is incomplete."""


@dataclass
class Job:
    """An agent and the content of its file."""

    agent: Agent
    data: bytes | None = None
    told: set[str] = field(default_factory=set)
    reminded: float | None = None
    """The time since which it had been waiting when it was reminded."""

    @property
    def name(self) -> str:
        return self.agent.name


def asked(args: Namespace, api: Mngr, root: Path, prompt: str, version: int) -> CreateRequest:
    """Return the request for an agent, with the settings of `mngr create`."""
    name = f"tutorial-{args.verb}-{secrets.token_hex(2)}"
    # The prompt names the project's folder as seen from the top of its repository.
    found = checkout(local_repository(str(root)))
    words = [name, "--from", found.top if found else str(root)]
    words += ["--label", f"tutorial={args.verb}"]
    words += ["--label", f"prompt={args.verb}-{version}"]
    words += ["--type", args.type] if args.type else []
    given = parsed(args.registry, args.config, "create", [*words, "--", *args.agent_arg])
    made, remarks = api.settled(request(given).replace(scripts=scripts()))
    if not made.args and made.type in INCAPABLE:
        raise _cannot(args, made.type)
    for remark in remarks:
        say(args, f"Note: {remark}")
    return made.replace(
        message=normalise(prompt),
        timeout=args.timeout + BACKSTOP,
        reuse=False,
        headless=False,
    )


def _cannot(args: Namespace, chosen: str) -> UsageError:
    """Return the error for an agent type that cannot read a prompt."""
    if args.type:
        what = "only repairs failing tests" if chosen == "mechanic" else "only runs a command"
        return UsageError(
            f"`tutorial {args.verb}` requires a coding agent, and --type {args.type} {what}",
            "use --type claude, codex or opencode",
        )
    return UsageError(
        f"`tutorial {args.verb}` requires a coding agent, and none is installed or configured",
        "name one with --type, or set commands.create.type",
    )


def carry_out(
    args: Namespace, api: Mngr, requests: list[CreateRequest], errand: Errand
) -> list[Job]:
    """Start the agents, wait until each has written its file or ended, and stop them."""
    jobs: list[Job] = []
    try:
        for agent in _launched(api, requests):
            jobs.append(Job(agent))
            say(args, f"{agent.name} is working; attach with `mngr connect {agent.name}`.")
        _wait(args, api, jobs, errand)
    finally:
        _stop(api, {request.address for request in requests})
    return jobs


def _stop(api: Mngr, names: set[str]) -> None:
    """Stop agents by name: at Ctrl-C an agent may be running that is not in our list yet."""
    api.stop_many([agent for agent in api.list() if agent.name in names and agent.state in ALIVE])


def _launched(api: Mngr, requests: list[CreateRequest]) -> Iterator[Agent]:
    for index, made in api.create_many(requests):
        if isinstance(made, Exception):
            if len(requests) == 1:
                raise made
            warn(f"{requests[index].address}: {made}")
            continue
        yield made.agent
        if made.receipt is not None and not made.receipt.ok:
            raise MngrError(f"{made.agent.name} did not receive its prompt: {made.receipt.detail}")


def _wait(args: Namespace, api: Mngr, jobs: list[Job], errand: Errand) -> None:
    deadline = time.monotonic() + args.timeout
    while open_jobs := [job for job in jobs if not _look(args, api, job, errand)]:
        if time.monotonic() > deadline:
            late = ", ".join(job.name for job in open_jobs)
            raise TimedOut(
                f"no result after {args.timeout:g} s from {late}", "allow more with --timeout"
            )
        time.sleep(PAUSE)


def _look(args: Namespace, api: Mngr, job: Job, errand: Errand) -> bool:
    """Return whether the job is done. The state is read first: the file never comes after it."""
    if job.data is not None:
        return True
    job.agent = api.get(job.agent)
    over = _is_over(args, job)
    data = _read(api, job.agent, errand)
    if data is None:
        return over and not _remind(api, job, errand.reminder)
    try:
        errand.parse(data)
    except MngrError:
        if not over:  # it may still be being written
            return False
    job.data = data
    return True


def _is_over(args: Namespace, job: Job) -> bool:
    agent = job.agent
    if agent.state is not State.WAITING:
        return agent.state in ENDED
    if agent.verdict.reason.startswith(("permission", "quota", "dialog", "unreachable")):
        if agent.verdict.reason not in job.told:
            job.told.add(agent.verdict.reason)
            reason = clean(agent.verdict.reason)
            say(args, f"{job.name} is waiting ({reason}); answer with `mngr connect {job.name}`.")
        return False
    return agent.verdict.since != job.reminded


def _read(api: Mngr, agent: Agent, errand: Errand) -> bytes | None:
    script = '[ -f "$MNGR_AGENT_STATE_DIR/$1" ] && head -c "$2" "$MNGR_AGENT_STATE_DIR/$1"'
    words = ["sh", "-c", script, "mngr", errand.file, str(errand.limit + 1)]
    done = api.exec(agent, words, timeout=60)
    return done.stdout if done.exit_code == 0 else None


def _remind(api: Mngr, job: Job, text: str) -> bool:
    """Send the reminder once, to a running agent; return whether it was delivered."""
    if job.reminded is not None or job.agent.state not in ALIVE:
        return False
    job.reminded = job.agent.verdict.since
    try:
        return api.message(job.agent, text).ok
    except MngrError:
        return False


def why_nothing(job: Job, errand: Errand) -> str:
    """Return the message for an agent that ended without its file."""
    agent = job.agent
    return f"{job.name} did not write {errand.file} ({agent.state}: {clean(agent.verdict.reason)})"
