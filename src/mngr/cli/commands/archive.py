"""`mngr archive`: stop agents and leave them out of lists."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.commands.stop import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mngr.api import Agent
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Parser


def configure(parser: Parser) -> None:
    parser.description = (
        "Stop agents and put them aside: `mngr list` shows them only with --archived. "
        "`mngr start` brings one back."
    )
    targets.add_targets(parser, "the agents to archive")
    parser.add_dry_run()
    parser.examples = [
        ("put an agent aside", "mngr archive foo"),
        ("put aside all that failed", "mngr list --failed --ids | mngr archive -"),
        ("see them", "mngr list --archived"),
        ("bring one back", "mngr start foo"),
    ]
    parser.see_also = ["mngr-stop", "mngr-start", "mngr-list"]


def run(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)

    def archive(agent: Agent) -> Agent:
        return agent if args.dry_run else api.archive(agent)

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        return after.to_json(), note(args, before, after)

    return targets.each(args, targets.agents(args, api), archive, describe)
