"""`mngr archive`: stop agents and leave them out of lists."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.commands.stop import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import Agent
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Namespace, Parser


def configure(parser: Parser) -> None:
    parser.description = (
        "Stop agents and hide them: `mngr list` shows archived agents only with --archived. "
        "`mngr start` starts an archived agent and shows it again."
    )
    targets.add_targets(parser, "agents to archive")
    parser.add_dry_run()
    parser.examples = [
        ("archive an agent", "mngr archive foo"),
        ("archive all failed agents", "mngr list --failed --ids | mngr archive -"),
        ("list archived agents", "mngr list --archived"),
        ("start an archived agent again", "mngr start foo"),
    ]
    parser.see_also = ["mngr-stop", "mngr-start", "mngr-list"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)

    def archive(agent: Agent) -> Agent:
        return agent if args.dry_run else api.archive(agent)

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        return after.to_json(), note(args, before, after)

    return targets.each(args, targets.agents(args, api), archive, describe)
