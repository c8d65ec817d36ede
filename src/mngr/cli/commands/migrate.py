"""`mngr migrate`: move an agent to another host."""

from __future__ import annotations

from mngr.api import Agent, Host, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import asker, print_result, say
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import MngrError, NotFound, UsageError
from mngr.model.address import parse_address

LOGIN = "copy the login of the coding agent, its API keys and secret settings, to the other host"

DESCRIPTION = """\
Move an agent to another host. mngr stops the agent, clones it to the other host under the same \
name, compares the copy of its work with the original, and starts the program there. Then the \
original is moved to the trash; `mngr restore` brings it back. If a step fails before that, the \
original is started again, and nothing is lost.

If the command was interrupted, run it again to complete it."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    add = parser.add_argument
    targets.add_target(parser, "the agent to move")
    add("host", metavar="HOST", help="target host: HOST, HOST.PROVIDER or .PROVIDER")
    add("--pass-login", action="store_true", help=LOGIN)
    parser.add_dry_run()
    parser.examples = [
        ("move an agent to another host", "mngr migrate foo box"),
        ("restore the original", "mngr restore foo"),
    ]
    parser.see_also = ["mngr-clone", "mngr-destroy", "mngr-restore"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    api.ask_with(asker(args))
    host = _host(api, args.host)
    try:
        agent = _agent(args, api, host)
    except MngrError:
        there = api.arrived(args.target, host)
        if there is None:
            raise
        return _tell(args, there, f"{there.name} is already on {host.ref.name}.")
    if args.dry_run:
        return _tell(args, agent, f"Would move {agent.name} to {host.ref.name}.")
    done = api.migrate(agent, host, pass_login=args.pass_login)
    for remark in done.remarks:
        say(args, f"Note: {remark}")
    undo = f"mngr restore {agent.id}"
    return _tell(
        args, done.agent, f"Moved {agent.name} to {host.ref.name}; undo there with: {undo}"
    )


def _host(api: Mngr, text: str) -> Host:
    address = parse_address(f"@{text.removeprefix('@')}")
    if address.path is not None or not (address.host or address.provider):
        raise UsageError(f"{text!r} is not a host", "see `mngr list --hosts`")
    return api.find_host(address.host, address.provider)


def _agent(args: Namespace, api: Mngr, host: Host) -> Agent:
    """Return the agent to move, not the copy that may exist already."""
    pool = api.list()
    targets.footnotes(api)
    elsewhere = [agent for agent in pool if agent.host.ref != host.ref]
    try:
        return api.one(elsewhere, args.target)
    except NotFound:
        there = api.one(pool, args.target)
    raise UsageError(f"{there.name} is already on {host.ref.name}", "name another host")


def _tell(args: Namespace, agent: Agent, human: str) -> int:
    print_result(args, agent.to_json(), human)
    return 0
