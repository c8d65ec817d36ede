"""`mngr list`: list agents on all hosts. It has to start fast, so it imports little."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.commands.list_rows import FIELDS, add_filters, chosen, listed, providers, requested
from mngr.errors import PartialFailure, UsageError
from mngr.model.durations import parse_duration, written
from mngr.model.quoting import join
from mngr.query import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Agent, Changes
    from mngr.cli.app.output import Column, Row
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

COLUMNS: list[Column] = ["name", "state", "age", "agent", "changes", "reason"]
DESCRIPTION = """\
List the agents on all hosts, oldest first, or the named agents. Archived agents are hidden unless \
you pass --archived. Hosts that do not answer are listed on standard error.

AGE is the time in the current state. AGENT is the agent's type, or its command. CHANGES counts \
the agent's commits and the lines they added and removed, for worktrees and clones on this \
machine; for uncommitted changes see `mngr show` and `mngr diff`. HOST is shown if the agents are \
on more than one host. On a terminal the table is cut to the terminal's width.

Filters are combined with AND; several states, types, projects or providers are alternatives: \
`--failed --stopped --type claude` lists claude agents that are FAILED or STOPPED."""

NOTES = """\
Filter expressions use the fields of an agent: id, name, type, command, argv, work_dir, \
initial_branch, sandbox (offline, open, or empty), create_time, start_time, state, state_reason, \
state_since, pid, labels, project, idle_seconds, runtime_seconds, exit_code, usage, archived, host \
(id, name, provider, state, tags) and plugin. `now` is the current time.

Some fields are computed only if an option or template names them. From the work directory: ahead \
(commits since the start), behind (commits of the source branch that the agent does not have), \
dirty (number of files with uncommitted changes) and changes (commits, added and removed lines, as \
in CHANGES). From the conversation: tokens, cost in dollars, and the details in usage, which is \
null otherwise. idle is the number of seconds since the last activity."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_targets(parser, "list only these agents")
    add_filters(parser)
    add = parser.add_argument
    add("--no-changes", action="store_true", help="hide the CHANGES column")
    add("--hosts", action="store_true", help="list hosts instead of agents")
    add("--schema", action="store_true", help="print the JSON schema of `--format json`")
    help = "refresh every SECONDS (default 2) until interrupted"
    add("--watch", nargs="?", type=_interval, const=2.0, metavar="SECONDS", help=help)
    parser.examples = [
        ("list all agents", "mngr list"),
        ("list two agents", "mngr list fix docs"),
        ("print running agents as JSON", "mngr list --running --format json"),
        ("list claude agents that are done or lost", "mngr list --type claude --done --lost"),
        (
            "filter with an expression",
            "mngr list --include 'labels.team == \"web\" && idle_seconds > 600'",
        ),
        ("choose the columns", "mngr list --fields name,state,state_reason,labels.team"),
        ("show the progress of each agent", "mngr list --fields name,state,ahead,behind,dirty"),
        (
            "show the cost of each agent",
            "mngr list --fields name,state,idle,tokens,cost --sort cost:desc",
        ),
        ("stop all waiting agents", "mngr list --waiting --ids | mngr stop -"),
    ]
    parser.most_used = (
        "--running --waiting --failed --include --label --fields --sort --ids --watch --format"
    ).split()
    parser.see_also = ["mngr-observe", "mngr-wait", "mngr-create"]


def _interval(text: str) -> float:
    seconds = parse_duration(text)
    if seconds < 0.1:
        raise UsageError("must be at least 0.1 s")
    return seconds


def run(args: Namespace) -> int:
    if args.schema:
        from mngr.cli.commands.list_schema import show_schema

        return show_schema(args)
    if args.hosts:
        from mngr.cli.commands.list_hosts import show

        return show(args)
    if args.watch is not None:
        from mngr.cli.app.following import again

        return again(args.watch, lambda: _show(args))
    return _show(args)


def _show(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    by_name = args.stdin or args.target
    args.failures = []
    found = targets.agents(args, api) if by_name else api.list(providers=providers(args))
    table = chosen(args, _table(args, api, found))
    columns = COLUMNS
    if args.format == "human" and args.fields is None and not args.ids and not args.quiet:
        columns = _columns(args, table) if table else []
        table = _for_people(api, found, table, "changes" in columns)
    errors = _errors(api, found)
    errors += [{"message": str(failure)} for failure in args.failures]
    listed(args, table, columns, "agents", errors, "No agents found", FIELDS)
    return PartialFailure.exit_code if args.failures else 0


def _columns(args: Namespace, table: Sequence[Row]) -> list[Column]:
    hosts = {select(row, "host.id") for row in table}
    columns = [each for each in COLUMNS if each != "changes" or not args.no_changes]
    return [*columns[:2], "host", *columns[2:]] if len(hosts) > 1 else columns


def _for_people(
    api: Mngr, found: Sequence[Agent], table: Sequence[Row], with_changes: bool
) -> list[Row]:
    """Return the cells of the default table."""
    agents = {agent.place: agent for agent in found}
    shown = [agents[str(select(row, "host.id")), str(row["id"])] for row in table]
    changed: Sequence[Changes | None] = ()
    if with_changes:
        changed = api.changes(shown)
    return [
        {
            "name": agent.name,
            "state": str(agent.state),
            "host": agent.host.ref.name,
            "age": written(agent.now - agent.verdict.since, 1),
            "agent": program(agent),
            "changes": str(changed[at] or "") if changed else "",
            "reason": agent.verdict.detail,
        }
        for at, agent in enumerate(shown)
    ]


def program(agent: Agent) -> str:
    """Return the agent's type, or its command for the type `command`."""
    record = agent.evidence.record
    if record is None or record.type != "command":
        return record.type if record else ""
    return join(record.argv)


def _table(args: Namespace, api: Mngr, found: Sequence[Agent]) -> list[dict[str, Json]]:
    table = [agent.to_json() for agent in found]
    if names := requested(args):
        for row, more in zip(table, api.columns(found, names), strict=True):
            row.update(more)
    return table


def _errors(api: Mngr, found: Sequence[Agent]) -> list[Json]:
    """Return errors for hosts that did not answer and unreadable records."""
    errors: list[Json] = [{"message": problem} for problem in dict.fromkeys(api.problems)]
    for agent in found:
        if agent.evidence.record is None:
            message = f"{agent.id}: unreadable record: {agent.evidence.problem}"
            errors.append({"agent_id": agent.id, "message": message})
    return errors
