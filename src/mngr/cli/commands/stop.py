"""`mngr stop`, `mngr kill` and `mngr archive`: stop agents and keep their work."""

from __future__ import annotations

from mngr.api import Agent, Host, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import Row, many, print_result, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import MngrError, NotFound, UsageError
from mngr.model.state import ALIVE, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.model.struct import Json

DESCRIPTION = """\
Save the screen, ask every process of the agents to end, and kill those that are still running \
after `stop.grace`. The work directory, branch and record are kept; `mngr start` starts the agent \
again.

Stopping an agent that has ended has no effect and is not an error."""

KILL = """\
Kill every process of the agents after one second instead of `stop.grace`; same as `mngr stop \
--force`. The work directory, branch and record are kept; `mngr start` starts the agent again."""

ARCHIVE = """\
Stop agents and hide them: `mngr list` shows archived agents only with --archived. `mngr start` \
starts an archived agent and shows it again."""


def configure(parser: Parser) -> None:
    {"archive": _configure_archive, "kill": _configure_kill}.get(parser.command, _configure)(parser)


def _configure_kill(parser: Parser) -> None:
    _configure(parser)
    parser.description = KILL
    parser.option("--force").default = True
    parser.examples = [("kill an agent's program", "mngr kill foo")]
    parser.see_also = ["mngr-stop", "mngr-start", "mngr-destroy"]


def _configure_archive(parser: Parser) -> None:
    parser.description = ARCHIVE
    targets.add_targets(parser, "agents to archive")
    parser.add_dry_run()
    parser.examples = [
        ("archive an agent", "mngr archive foo"),
        ("archive all failed agents", "mngr list --failed --ids | mngr archive -"),
        ("list archived agents", "mngr list --archived"),
        ("start an archived agent again", "mngr start foo"),
    ]
    parser.see_also = ["mngr-stop", "mngr-start", "mngr-list"]


def _configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_targets(parser, "agents to stop", session=True)
    parser.add_argument("--all", action="store_true", help="stop all running agents")
    help = "kill the processes after one second instead of `stop.grace`"
    parser.add_argument("-f", "--force", action="store_true", help=help)
    parser.add_argument("--archive", action="store_true", help="archive the agents too")
    help = "stop their hosts too, with all other agents on them"
    parser.add_argument("--stop-host", action="store_true", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("stop one agent", "mngr stop foo"),
        ("stop all waiting agents", "mngr list --waiting --ids | mngr stop -"),
        ("stop all agents", "mngr stop --all"),
        ("stop and archive an agent", "mngr stop --archive foo"),
    ]
    parser.see_also = ["mngr-start", "mngr-archive", "mngr-destroy"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        if before.state in ALIVE and not args.dry_run:
            warn_unread(api, after)
        return after.to_json(), note(args, before, after)

    if args.command == "archive":
        archive = (lambda agent: agent) if args.dry_run else api.archive
        return targets.each(args, targets.agents(args, api), archive, describe)
    chosen = _chosen(args, api)
    machines = _hosts(api, chosen) if args.stop_host else []
    targets.outlive_terminal()
    unrecorded = {} if args.dry_run else api.stop_many(chosen, force=args.force)
    after = chosen if args.dry_run else api.list([agent.id for agent in chosen])

    def stop(agent: Agent) -> Agent:
        now = next((each for each in after if each.place == agent.place), None)
        if now is None:
            raise NotFound("it was destroyed in the meantime", "see `mngr restore --list`")
        if not args.dry_run:
            api.check_stopped(now, unrecorded)
        return api.archive(now) if args.archive and not args.dry_run else now

    def stop_hosts() -> dict[str, Json]:
        return {"hosts": [host.ref.name for host in machines if _host_too(args, api, host)]}

    return targets.each(args, chosen, stop, describe, stop_hosts if machines else dict)


def _hosts(api: Mngr, chosen: list[Agent]) -> list[Host]:
    """Return the hosts of the agents, each once; raise if one cannot be stopped."""
    found = {agent.host.ref.id: agent.host for agent in chosen}
    for host in found.values():
        api.check_restarts(host)
    return list(found.values())


def _host_too(args: Namespace, api: Mngr, host: Host) -> bool:
    """Stop the host of agents that have been stopped; return whether that succeeded."""
    try:
        if not args.dry_run:
            api.stop_host(host.ref.id)
    except MngrError as error:
        why = f"host {host.ref.name} was not stopped: {error.message}"
        args.failures.append(MngrError(why, error.hint))
        warn(str(args.failures[-1]))
        return False
    if args.format == "human":
        done = "Would stop" if args.dry_run else "Stopped"
        print_result(args, {}, f"{done} host {host.ref.name}.")  # --quiet prints only agents
    return True


def _chosen(args: Namespace, api: Mngr) -> list[Agent]:
    if not args.all:
        return targets.agents(args, api)
    if args.target or args.session or args.stdin:
        raise UsageError("--all and names cannot be used together", "use one of them")
    alive = [agent for agent in api.list() if agent.state in ALIVE]
    targets.footnotes(api)
    return alive


def warn_unread(api: Mngr, agent: Agent) -> None:
    """Warn about messages that the agent's program had queued when it was stopped."""
    if lost := api.unread(agent):
        told = f"{many(len(lost), 'queued message')} had not been read and will not be delivered"
        warn(f"{agent.name}: {told}: {'; '.join(lost)}")


def note(args: Namespace, before: Agent, after: Agent) -> str:
    """Return the result for the user: the action, or the state that made it unnecessary."""
    verb = "archive" if args.command == "archive" or getattr(args, "archive", False) else "stop"
    if verb == "archive" and not before.record.archived:
        return f"Would archive {before.name}." if args.dry_run else f"Archived {after.name}."
    if before.state not in ALIVE:
        record = after.evidence.record
        kept = "archived" if record and record.archived else after.verdict
        return f"{after.name} is already {kept}."
    if args.dry_run:
        return f"Would stop {before.name} ({before.state})."
    if after.state is not State.STOPPED:
        return f"{after.name} ended by itself: {after.verdict}."
    return f"Stopped {after.name}."
