"""`mngr list`: every agent, everywhere. Start-up is a feature here: import nothing needless."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli import targets
from mngr.cli.choosing import FIELDS, add_filters, chosen, listed, requested
from mngr.cli.output import warn
from mngr.errors import PartialFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mngr.api import Agent
    from mngr.cli.output import Column
    from mngr.cli.parser import Parser
    from mngr.struct import Json

COLUMNS: list[Column] = [
    "name",
    "state",
    ("host.name", "HOST"),
    ("host.provider_name", "PROVIDER"),
    ("host.state", "HOST STATE"),
    "project",
]

DESCRIPTION = """\
Show every agent on every host, oldest first. Agents that were archived are left out unless asked \
for. A host that does not answer is named on standard error.

Filters of different kinds must all hold; state flags add up, as in `--failed --stopped`."""

NOTES = """\
Expressions are CEL over the fields of an agent: id, name, type, command, work_dir, \
initial_branch, sandbox (offline, open, or empty), create_time, start_time, state, state_reason, \
state_since, pid, labels, project, idle_seconds, runtime_seconds, exit_code, usage, archived, \
host (id, name, provider_name, state, tags) and plugin. `now` is the present time.

More are worked out only where an option or template names them. These look into the work \
directory of each agent: ahead (commits since it began), behind (commits of its source that it \
lacks) and dirty (files that differ from its last commit). These read its conversation: tokens, \
cost in dollars, and usage with all its parts, which is null otherwise. And idle: whole seconds \
since it last did something."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    add_filters(parser)
    targets.add_stdin(parser)
    add = parser.add_argument
    add("--hosts", action="store_true", help="list hosts instead of agents")
    help = "print again every SECONDS (default 2) until interrupted"
    add("--watch", nargs="?", type=_interval, const=2.0, metavar="SECONDS", help=help)
    parser.examples = [
        ("see all agents", "mngr list"),
        ("those at work, as JSON", "mngr list --running --format json"),
        ("by an expression", "mngr list --include 'labels.team == \"web\" && idle_seconds > 600'"),
        ("the columns you want", "mngr list --fields name,state,state_reason,labels.team"),
        ("what they have done so far", "mngr list --fields name,state,ahead,behind,dirty"),
        ("what they cost", "mngr list --fields name,state,idle,tokens,cost --sort cost:desc"),
        ("stop all that wait", "mngr list --waiting --ids | mngr stop -"),
    ]
    parser.see_also = ["mngr-observe", "mngr-wait", "mngr-create"]


def _interval(text: str) -> float:
    from mngr.durations import parse_duration

    seconds = parse_duration(text)
    if seconds < 0.1:
        raise UsageError("at least 0.1 s")
    return seconds


def run(args: argparse.Namespace) -> int:
    if args.hosts:
        from mngr.cli.hosts_table import show

        return show(args)
    if args.watch is not None:
        from mngr.cli.watching import again

        return again(args.watch, lambda: _show(args))
    return _show(args)


def _show(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)
    found = targets.agents(args, api, targets.lines_of_stdin()) if args.stdin else api.list()
    table = chosen(args, _table(args, api, found))
    errors = _errors(api, found)
    listed(args, table, COLUMNS, "agents", errors, "No agents found", FIELDS)
    failures = args.failures if args.stdin else ()
    for error in failures:
        warn(str(error))
    return PartialFailure.exit_code if failures else 0


def _table(args: argparse.Namespace, api: Mngr, found: Sequence[Agent]) -> list[dict[str, Json]]:
    table = [agent.to_json() for agent in found]
    if names := requested(args):
        from mngr.ops.columns import columns

        for row, more in zip(table, columns(api.world, found, names), strict=True):
            row.update(more)
    return table


def _errors(api: Mngr, found: Sequence[Agent]) -> list[Json]:
    """Silent hosts and unreadable records; neither hides anything else."""
    errors: list[Json] = [{"message": problem} for problem in dict.fromkeys(api.problems)]
    for agent in found:
        if agent.evidence.record is None:
            message = f"{agent.id}: unreadable record: {agent.evidence.problem}"
            errors.append({"agent_id": agent.id, "message": message})
    return errors
