"""`mngr connect`: attach to an agent."""

from __future__ import annotations

import sys

from mngr.api import Agent, Mngr
from mngr.cli.app import targets, terminal
from mngr.cli.app.output import can_ask, clean, confirm, say, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.commands.start import login_notes
from mngr.errors import Ambiguous, MngrError, NotFound, Refused, UsageError
from mngr.model.state import ALIVE, State

DESCRIPTION = """\
Attach your terminal to the terminal of an agent. Detach with C-b d; the agent keeps running. \
Inside your own tmux, if it uses C-b too, press C-b twice, then d. Without TARGET, choose an agent \
from a list by number, by name or by the start of a name. Inside the terminal of another agent, \
mngr switches that terminal to TARGET.

A stopped or lost agent is started first. For an agent that is DONE or FAILED, mngr shows the last \
screen and the exit code; it starts the agent again only with --start, or if you answer yes."""

NOTES = """\
To configure the agents' tmux server, write tmux settings to tmux.user.conf in mngr's home \
($MNGR_HOST_DIR, or ~/.mngr), such as another prefix, key bindings or `set -g mouse off`. The file \
is read when the server starts. 24-bit colours are used if your terminal announces them \
(COLORTERM=truecolor).

A connect command that calls `mngr connect` for the same agent attaches to that agent."""

FINISHED = (State.DONE, State.FAILED)


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_target(parser, nargs="?")
    help = "start the agent if it is not running (default: if STOPPED or LOST)"
    parser.add_argument("--start", action="switch", help=help)
    parser.add_argument("--connect-command", metavar="CMD", help=terminal.CONNECT_COMMAND)
    parser.add_yes()
    parser.add_argument("--read-only", action="store_true", help="attach without sending keys")
    parser.examples = [
        ("attach to an agent", "mngr connect tests"),
        ("choose from a list", "mngr connect"),
        ("start a finished agent again", "mngr connect tests --start"),
        ("attach without sending keys", "mngr connect tests --read-only --no-start"),
        (
            "open in a new terminal window",
            "mngr connect tests --connect-command 'xterm -e sh -c \"$MNGR_CONNECT_ARGV\" &'",
        ),
    ]
    parser.see_also = ["mngr-create", "mngr-capture", "mngr-start"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    agent = _chosen(args, api)
    args.connect_command = command = terminal.connect_command(args, agent.record)
    again = bool(args.start)
    if agent.state in FINISHED and not again:
        again = _wants_again(args, api, agent)
        if not again:
            return 0
    if not command and not terminal.is_terminal():
        raise UsageError(
            "connecting requires a terminal", "see `mngr capture`, or --connect-command"
        )
    if agent.state not in ALIVE and (again or args.start is None):
        agent = _started(args, api, agent)
    return terminal.connect(agent, command=command, read_only=args.read_only)


def _wants_again(args: Namespace, api: Mngr, agent: Agent) -> bool:
    """Show how the agent ended and, on a terminal, ask whether to start it again."""
    try:
        sys.stdout.write(clean(api.capture(agent)))
    except NotFound:
        pass  # it never had a screen
    ended = f"{agent.name} is {agent.verdict}"
    hint = f"run it again with `mngr connect {agent.name} --start`"
    if args.connect_command:
        raise Refused(ended, hint)
    say(args, f"{ended}; {hint}")
    if args.start is not None:
        return False
    return args.yes or (can_ask(args) and confirm(args, "Start it again?"))


def _chosen(args: Namespace, api: Mngr) -> Agent:
    if args.target is not None:
        return targets.agents(args, api, [args.target])[0]
    if args.headless or not terminal.is_terminal():
        raise UsageError("no agent given", "choosing from a list requires a terminal")
    pool = [agent for agent in api.list() if not _archived(agent)]
    targets.footnotes(api)
    if not pool:
        raise NotFound("there are no agents", "create one with `mngr create`")
    return _picked(api, pool)


def _archived(agent: Agent) -> bool:
    return agent.evidence.record is not None and agent.evidence.record.archived is not None


def _picked(api: Mngr, pool: list[Agent]) -> Agent:
    """Ask for a number, a name or its start until the answer names one agent."""
    width = max(len(agent.name) for agent in pool)
    for number, agent in enumerate(pool, start=1):
        note = f"{number:3}  {agent.name:{width}}  {agent.verdict}"
        sys.stderr.write(clean(note) + "\n")
    while True:
        sys.stderr.write("Which one? ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip()
        if not answer:
            raise Refused("no agent was chosen")
        try:
            return _by_answer(api, pool, answer)
        except (NotFound, UsageError) as mistake:
            warn(str(mistake))


def _by_answer(api: Mngr, pool: list[Agent], answer: str) -> Agent:
    named = [agent for agent in pool if agent.name == answer]
    if not named and answer.isascii() and answer.isdigit():
        if not 1 <= int(answer[:9]) <= len(pool):
            raise NotFound(f"there is no number {answer[:9]}", f"choose from 1 to {len(pool)}")
        return pool[int(answer) - 1]
    begun = [agent for agent in pool if agent.name.startswith(answer)]
    if not named and len(begun) > 1:
        names = ", ".join(agent.name for agent in begun)
        raise Ambiguous(f"{answer!r} matches {names}", "type more of the name")
    return begun[0] if len(begun) == 1 else api.one(pool, answer)


def _started(args: Namespace, api: Mngr, agent: Agent) -> Agent:
    started = api.start(agent)
    if started.state not in ALIVE:
        say(args, f"{started.name} was started and is already {started.state}.")
        raise MngrError(
            f"{started.name} is {started.verdict}",
            f"see its screen with `mngr capture {started.name}`",
        )
    say(args, f"Started {started.name}.{login_notes(api, started, agent)}")
    return started
