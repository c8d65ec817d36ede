"""`mngr clone`: create another agent with the same work."""

from __future__ import annotations

from mngr.api import Agent, CreateRequest, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import asker, one, print_result
from mngr.cli.app.parser import Namespace, Parser
from mngr.cli.commands import create_options
from mngr.cli.commands.create import (
    add_connect,
    launch_failure,
    message_failure,
    tell_remarks,
    templates,
    whereabouts,
)
from mngr.errors import MngrError, UsageError
from mngr.model.struct import Json

DESCRIPTION = """\
Create a copy of the agent TARGET. The new agent has the same program, type, labels, variables and \
windows, and the same work: its commits, uncommitted changes and untracked files (if the work \
directory is a plain copy, all files). It works on its own branch and starts at once. The original \
does not change.

Options of `mngr create` override the copied values; labels and variables are added to the copied \
ones. Everything after `--` replaces the command."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    parser.rest_name = "ARGS"
    add = parser.add_argument
    targets.add_target(parser, "the agent to copy")
    help = "name of the copy, or NAME@HOST (default: NAME-2)"
    add("address", nargs="?", metavar="NEW", help=help)
    create_options.configure(parser)
    add_connect(parser, "attach to the new agent (default: no)", default=False)
    parser.add_dry_run()
    parser.examples = [
        ("copy an agent and its work", "mngr clone foo"),
        ("run another command on the copy", "mngr clone foo bar -- make other"),
        ("add a label", "mngr clone foo bar --label attempt=2"),
    ]
    parser.most_used = (
        "-m --type --connect --branch --env --label --template --provider --timeout --dry-run"
    ).split()
    parser.see_also = ["mngr-create", "mngr-migrate", "mngr-snapshot"]


def defaults(args: Namespace) -> dict[str, Json]:
    return templates(args, args.template)


def run(args: Namespace) -> int:
    if args.source != ".":
        raise UsageError("--from: a clone has the work of its original", "use `mngr create --from`")
    if args.address == "":
        raise UsageError("the name is empty", "leave it out to get a generated name")
    api = Mngr(args.config, args.registry)
    api.ask_with(asker(args))
    agent = targets.agents(args, api, [args.target])[0]
    request = api.clone_request(agent, args.address or "", changes(args))
    if args.dry_run:
        return _preview(args, api, agent, request)
    created = api.create(request)
    tell_remarks(args, created)
    failure = launch_failure(created.agent) or message_failure(created)
    if failure:
        raise MngrError(failure)
    made = created.agent
    row = {**made.to_json(), "clone_of": agent.id}
    print_result(args, row, f"Cloned {agent.name} as {made.name}; it is {made.verdict}.")
    return whereabouts(args, made, connect=args.connect or bool(args.connect_command))


def changes(args: Namespace) -> dict[str, object]:
    """Return the fields of a request that the command line sets."""
    asked = create_options.request(args)
    unsaid = {"address", "source"}
    if not args.type:
        unsaid.add("type")
        if not args.rest:
            unsaid.add("args")
    plain = CreateRequest()
    return {
        name: getattr(asked, name)
        for name in CreateRequest._fields
        if name not in unsaid and getattr(asked, name) != getattr(plain, name)
    }


def _preview(args: Namespace, api: Mngr, agent: Agent, request: CreateRequest) -> int:
    name, host, plan = api.preview(request)
    row: dict[str, Json] = {
        "clone_of": agent.id,
        "name": name,
        "host_name": host.ref.name,
        "work_dir": plan.work_dir if plan else "",
        "branch": plan.branch if plan else "",
    }
    one(args, row, f"Would clone {agent.name} as {name} on {host.ref.name}")
    return 0
