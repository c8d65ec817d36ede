"""`mngr rename`: give an agent another name."""

from __future__ import annotations

from mngr.api import Agent, Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import Row
from mngr.cli.app.parser import Namespace, Parser
from mngr.model.address import check_name


def configure(parser: Parser) -> None:
    parser.description = (
        "Rename an agent, even while it is running. Its id, work directory and branch are kept."
    )
    targets.add_target(parser, "name, id or address of the agent", dest="old")
    parser.add_argument("new", metavar="NEW", help="new name, unique on the host")
    parser.add_dry_run()
    parser.examples = [("rename an agent", "mngr rename foo bar")]
    parser.see_also = ["mngr-label", "mngr-list"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    check_name(args.new)
    chosen = targets.agents(args, api, [args.old])

    def rename(agent: Agent) -> Agent:
        return agent if args.dry_run else api.rename(agent, args.new)

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        row = {**after.to_json(), "name": args.new, "old_name": before.name}
        if before.name == args.new:
            return row, f"{before.name} already has that name."
        done = "Would rename" if args.dry_run else "Renamed"
        return row, f"{done} {before.name} to {args.new}."

    return targets.each(args, chosen, rename, describe)
