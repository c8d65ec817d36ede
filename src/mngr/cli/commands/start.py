"""`mngr start` and `mngr restart`: launch agents that have ended, or end them first."""

from __future__ import annotations

from mngr.api import Agent, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import Row, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import UsageError
from mngr.model.state import ALIVE

DESCRIPTION = """\
Start agents with the command, environment and work directory they were created with; a coding \
agent continues its conversation. The command returns once each program is running or has ended.

Starting a running agent has no effect and is not an error. If the program of a lost agent is \
still running without its terminal, it is stopped first, so that it never runs twice."""


RESTART = """\
Stop agents if they are running, then start them with the same command, environment and work \
directory."""


def configure(parser: Parser) -> None:
    if parser.command == "restart":
        _configure_restart(parser)
        return
    parser.description = DESCRIPTION
    targets.add_targets(parser, "agents to start")
    help = "attach to the agent; one agent only (default: no)"
    parser.add_argument("--connect", action="switch", default=False, help=help)
    parser.add_dry_run()
    parser.examples = [
        ("start a stopped agent", "mngr start foo"),
        ("start it and attach", "mngr start --connect foo"),
        ("start all failed agents", "mngr list --failed --ids | mngr start -"),
    ]
    parser.see_also = ["mngr-stop", "mngr-restart", "mngr-connect"]


def _configure_restart(parser: Parser) -> None:
    parser.description = RESTART
    targets.add_targets(parser, "agents to restart")
    parser.add_dry_run()
    parser.examples = [
        ("restart one agent", "mngr restart foo"),
        ("restart all agents of a project", "mngr list --project web --ids | mngr restart -"),
    ]
    parser.see_also = ["mngr-start", "mngr-stop"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    chosen = targets.agents(args, api)
    if args.command == "restart":
        return _restart(args, api, chosen)
    if args.connect and len(chosen) != 1:
        raise UsageError(f"--connect requires one agent, not {len(chosen)}")

    def start(agent: Agent) -> Agent:
        return agent if args.dry_run else api.start(agent, fresh=agent is chosen[0])

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        return after.to_json(), _note(args, before, after) + login_notes(api, after, before)

    code = targets.each(args, chosen, start, describe)
    if args.connect and not code and not args.dry_run:
        return _connect(args, api, chosen[0])
    return code


def _restart(args: Namespace, api: Mngr, chosen: list[Agent]) -> int:
    from mngr.cli.commands.stop import warn_unread

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        if args.dry_run:
            return after.to_json(), f"Would restart {before.name} ({before.state})."
        if before.state in ALIVE:
            warn_unread(api, before)
        return after.to_json(), started(after, "Restarted") + login_notes(api, after, before)

    restart = (lambda agent: agent) if args.dry_run else api.restart
    return targets.each(args, chosen, restart, describe)


def _note(args: Namespace, before: Agent, after: Agent) -> str:
    if before.state in ALIVE:
        return f"{after.name} is already {after.state}."
    return f"Would start {before.name}." if args.dry_run else started(after)


def started(agent: Agent, verb: str = "Started") -> str:
    """Return the result for the user; a fast program may have ended already."""
    if agent.state in ALIVE:
        return f"{verb} {agent.name}."
    return f"{verb} {agent.name}; it is {agent.verdict}."


def login_notes(api: Mngr, agent: Agent, before: Agent) -> str:
    """Return notes about a shared login, if the agent was started."""
    if agent.state not in ALIVE or agent.evidence.this_started == before.evidence.this_started:
        return ""
    return "".join(f"\nNote: {remark}" for remark in api.login_remarks(agent))


def _connect(args: Namespace, api: Mngr, agent: Agent) -> int:
    agent = api.get(agent)
    if agent.state not in ALIVE:
        warn(f"{agent.name} has already ended: {agent.verdict}")
        return 1
    from mngr.cli.app import terminal

    defaults = args.config.command_defaults("connect")
    return terminal.connect(agent, command=str(defaults.get("connect_command") or ""))
