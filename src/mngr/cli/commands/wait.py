"""`mngr wait`: return when agents reach a state."""

from __future__ import annotations

from collections.abc import Sequence

from mngr.api import Agent, Mngr, State
from mngr.cli.app import targets
from mngr.cli.app.output import cell, print_result, rows, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import NotFound, PartialFailure, TimedOut, UsageError, nearest, suggestion
from mngr.model.durations import parse_duration
from mngr.model.state import ENDED

BY_DEFAULT = (*ENDED, State.WAITING)

DESCRIPTION = """\
Wait until all named agents, or with --any the first of them, are in one of the given states. \
Without a state, wait until each agent has ended (STOPPED, DONE, FAILED, LOST) or is WAITING for \
input; exit with 1 if an agent is FAILED or LOST.

If an agent ends in a state other than the given ones, mngr stops waiting for it, prints its name \
and exits with 1.

An argument that is the name of a state, in capitals, is a state; refer to an agent with such a \
name by its id."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    help = "agents: names, ids or addresses; `-` reads them from standard input"
    targets.add_target(parser, help, nargs="*")
    help = f"state to wait for: {', '.join(State)}"
    add = parser.add_argument
    add("states", nargs="*", metavar="STATE", help=help, completes="state")
    targets.add_stdin(parser)
    help = "same as STATE; repeatable"
    add("--state", action="append", metavar="STATE", help=help, completes="state")
    add("--any", action="store_true", help="return as soon as one agent is in a given state")
    add("--all", action="store_true", help="wait for all agents (default)")
    help = "maximum time to wait; then exit with 124"
    add("--timeout", type=parse_duration, metavar="DURATION", help=help)
    parser.examples = [
        ("wait until it ends or needs input", "mngr wait foo"),
        ("wait at most ten minutes", "mngr wait foo DONE --timeout 10m"),
        ("wait for the first of several", "mngr wait --any a b c"),
        ("wait for all agents of a project", "mngr list --project web --ids | mngr wait -"),
    ]
    parser.see_also = ["mngr-observe", "mngr-list"]


def run(args: Namespace) -> int:
    if args.any and args.all:
        raise UsageError("--any and --all cannot be used together", "use one of them")
    states = _split(args)
    api = Mngr(args.config, args.registry)
    chosen = _agents(args, api)
    try:
        reached = api.wait(chosen, states, any_one=args.any, timeout=args.timeout)
    except TimedOut as late:
        if args.format == "json":
            now, wanted = api.list([agent.id for agent in chosen]), states or BY_DEFAULT
            there = [agent.to_json() for agent in now if agent.state in wanted]
            rows(args, there, [], "agents", [{"message": str(late)}])
        raise
    vanished = [] if args.any and reached else _missing(chosen, reached)
    for agent in vanished:
        warn(f"{agent.name} no longer exists")
    _report(args, reached)
    if chosen and not reached:
        return NotFound.exit_code
    if _ended_elsewhere(reached, states) if states else _failed(reached):
        return 1
    return PartialFailure.exit_code if vanished else 0


def _failed(reached: Sequence[Agent]) -> bool:
    """Print the agents that failed; a state that was asked for is not a failure."""
    bad = [agent for agent in reached if agent.state in (State.FAILED, State.LOST)]
    if bad:
        named = ", ".join(f"{a.name} is {cell(str(a.verdict))}" for a in bad)
        warn(named if len(reached) == 1 else f"{len(bad)} of {len(reached)} failed: {named}")
    return bool(bad)


def _ended_elsewhere(found: Sequence[Agent], states: Sequence[State]) -> bool:
    """Print the agents that ended in other states than the given ones."""
    others = [agent for agent in found if agent.state not in states]
    if others:
        named = ", ".join(f"{a.name} is {cell(str(a.verdict))}" for a in others)
        warn(f"{named}; not {' or '.join(states)}")
    return bool(others)


def _agents(args: Namespace, api: Mngr) -> list[Agent]:
    """Return all agents, or raise at once for an unknown name or state."""
    try:
        return targets.all_agents(args, api)
    except NotFound as error:
        for word in args.target:
            near = nearest(word, tuple(map(str, State))) if word.isupper() else ""
            if near and repr(word) in error.message:
                raise NotFound(error.message, f"did you mean the state {near!r}?") from None
        raise


def _split(args: Namespace) -> list[State]:
    """Move the words that are states from the targets to the states."""
    words = [*args.target, *args.states]
    named = [*args.state, *(word for word in words if word in State.__members__)]
    args.target = [word for word in words if word not in State.__members__]
    for name in named:
        if name.upper() not in State.__members__:
            hint = suggestion(name.upper(), map(str, State), f"choose from {', '.join(State)}")
            raise UsageError(f"--state: unknown state {name!r}", hint)
    return [State(name.upper()) for name in named]


def _missing(chosen: Sequence[Agent], reached: Sequence[Agent]) -> list[Agent]:
    there = {agent.place for agent in reached}
    return [agent for agent in chosen if agent.place not in there]


def _report(args: Namespace, reached: Sequence[Agent]) -> None:
    if args.format != "human":
        rows(args, [agent.to_json() for agent in reached], [], "agents")
        return
    for agent in reached:
        detail = cell(agent.verdict.detail)
        line = " ".join([agent.name, agent.state, *([detail] if detail else [])])
        print_result(args, agent.to_json(), line)
