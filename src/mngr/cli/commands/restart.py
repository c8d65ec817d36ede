"""`mngr restart`: stop agents and start them again."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.commands.start import login_notes, started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Namespace, Parser


def configure(parser: Parser) -> None:
    parser.description = (
        "Stop agents if they are running, then start them with the same command, environment "
        "and work directory."
    )
    targets.add_targets(parser, "agents to restart")
    parser.add_dry_run()
    parser.examples = [
        ("restart one agent", "mngr restart foo"),
        ("restart all agents of a project", "mngr list --project web --ids | mngr restart -"),
    ]
    parser.see_also = ["mngr-start", "mngr-stop"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)

    def restart(agent: Agent) -> Agent:
        return agent if args.dry_run else api.restart(agent)

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        if args.dry_run:
            return after.to_json(), f"Would restart {before.name} ({before.state})."
        notes = login_notes(api, after, before)
        return after.to_json(), started(after, "Restarted") + notes

    return targets.each(args, targets.agents(args, api), restart, describe)
