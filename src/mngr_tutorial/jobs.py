"""Start an agent with a prompt, wait until it is done, and read the file with its result.

Agents cost money, so the agent is stopped in all cases, including Ctrl-C.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from mngr.api import Agent, CreateRequest, Mngr, checkout, local_repository, normalise
from mngr.cli.app.main import parsed
from mngr.cli.app.output import clean, say
from mngr.cli.app.parser import Namespace
from mngr.cli.commands.create_options import request
from mngr.errors import MngrError, TimedOut, UsageError
from mngr.model.state import ALIVE, ENDED
from mngr_outcome.publish import scripts

PAUSE = 2.0
"""Seconds between two looks at an agent that waits: its reason may change without its state."""
ASKING = ("permission", "quota", "dialog", "unreachable")
"""Reasons to wait that are not the end of its work."""
BACKSTOP = 60.0
"""Seconds after the deadline at which the agent is stopped even if this command was killed."""

INCAPABLE = ("command", "mechanic")
"""Types that cannot read a prompt; the mechanic only repairs failing tests."""


@dataclass(frozen=True)
class Errand:
    """The file that the agent must write."""

    file: str
    """Its name in the state directory."""
    limit: int
    """Its maximum size in bytes."""
    reminder: str
    """Sent once if the agent waits for a prompt without having written its file."""


@dataclass(frozen=True)
class Job:
    """An agent that is done."""

    agent: Agent
    data: bytes | None
    """The content of its file; None if it did not write one."""

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


def carry_out(args: Namespace, api: Mngr, request: CreateRequest, errand: Errand) -> Job:
    """Start an agent, wait until it ends or waits for a prompt, read its file and stop it."""
    try:
        agent = _launched(api, request)
        deadline = time.monotonic() + args.timeout
        say(args, f"{agent.name} is working; attach with `mngr connect {agent.name}`.")
        agent = _done(args, api, agent, deadline)
        data = _read(api, agent, errand)
        if data is None and _reminded(api, agent, errand.reminder):
            agent = _done(args, api, agent, deadline, answered=agent.verdict.since)
            data = _read(api, agent, errand)
        return Job(agent, data)
    finally:
        _stop(api, request.address)


def _launched(api: Mngr, request: CreateRequest) -> Agent:
    made = api.create(request)
    if made.receipt is not None and not made.receipt.ok:
        raise MngrError(f"{made.agent.name} did not receive its prompt: {made.receipt.detail}")
    return made.agent


def _stop(api: Mngr, name: str) -> None:
    """Stop the agent by its name: at Ctrl-C it may be running before `create` has returned."""
    api.stop_many([agent for agent in api.list() if agent.name == name and agent.state in ALIVE])


def _done(
    args: Namespace, api: Mngr, agent: Agent, deadline: float, answered: float | None = None
) -> Agent:
    """Return the agent once it has ended, or waits for a prompt since another time than `answered`.

    A wait for a person, such as for a permission, is reported once.
    """
    told: set[str] = set()
    while True:
        agent = _waited(args, api, agent, deadline)
        reason, asks = agent.verdict.reason, agent.verdict.waiting in ASKING
        if agent.state in ENDED or not (asks or agent.verdict.since == answered):
            return agent
        if asks and reason not in told:
            told.add(reason)
            how = f"answer with `mngr connect {agent.name}`"
            say(args, f"{agent.name} is waiting ({clean(reason)}); {how}.")
        time.sleep(min(PAUSE, max(0.0, deadline - time.monotonic())))


def _waited(args: Namespace, api: Mngr, agent: Agent, deadline: float) -> Agent:
    """Return the agent when it ends or waits; raise if it does not before the deadline."""
    late = TimedOut(
        f"no result after {args.timeout:g} s from {agent.name}", "allow more with --timeout"
    )
    left = deadline - time.monotonic()
    if left <= 0:
        raise late
    try:
        found = api.wait([agent], timeout=left)
    except TimedOut:
        raise late from None
    if not found:
        raise MngrError(f"{agent.name} no longer exists", "start again")
    return found[0]


def _read(api: Mngr, agent: Agent, errand: Errand) -> bytes | None:
    script = '[ -f "$MNGR_AGENT_STATE_DIR/$1" ] && head -c "$2" "$MNGR_AGENT_STATE_DIR/$1"'
    words = ["sh", "-c", script, "mngr", errand.file, str(errand.limit + 1)]
    done = api.exec(agent, words, timeout=60)
    return done.stdout if done.exit_code == 0 else None


def _reminded(api: Mngr, agent: Agent, text: str) -> bool:
    """Send the reminder to an agent that has not ended; return whether it was delivered."""
    if agent.state in ENDED:
        return False
    try:
        return api.message(agent, text).ok
    except MngrError:
        return False


def why_nothing(job: Job, errand: Errand) -> str:
    """Return the message for an agent that ended without its file."""
    agent = job.agent
    return f"{job.name} did not write {errand.file} ({agent.state}: {clean(agent.verdict.reason)})"
