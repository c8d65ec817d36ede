"""`mngr label`: set, remove and print labels of agents."""

from __future__ import annotations

from mngr.api import Agent, Mngr, parse_labels
from mngr.cli.app import targets
from mngr.cli.app.output import Row, rows
from mngr.cli.app.parser import Namespace, Parser
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def configure(parser: Parser) -> None:
    parser.description = (
        "Set labels of agents: arguments with `=` are labels, all other arguments "
        "are agents. Labels with other keys are kept. Without a label to set or remove, print "
        "the labels."
    )
    targets.add_targets(parser, "agents, and labels as K=V")
    help = "remove this label; repeatable"
    parser.add_argument("--remove", action="append", metavar="K", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("label an agent", "mngr label foo team=web ticket=431"),
        ("label several agents", "mngr list --project web --ids | mngr label - team=web"),
        ("remove a label", "mngr label foo --remove ticket"),
        ("print the labels", "mngr label foo"),
    ]
    parser.see_also = ["mngr-list", "mngr-rename"]


def run(args: Namespace) -> int:
    labels = parse_labels([word for word in args.target if "=" in word])
    args.target = [word for word in args.target if "=" not in word]
    api = Mngr(args.config, args.registry)
    chosen = targets.agents(args, api)
    if not labels and not args.remove:
        return _print(args, chosen)

    def change(agent: Agent) -> Agent:
        return agent if args.dry_run else api.label(agent, labels, args.remove)

    def describe(before: Agent, after: Agent) -> tuple[Row, str]:
        kept = {k: v for k, v in before.record.labels.items() if k not in args.remove}
        there = {**kept, **labels} if args.dry_run else after.record.labels
        done = "Would label" if args.dry_run else "Labelled"
        unknown = [key for key in args.remove if key not in before.record.labels]
        remarks = [f"Note: {after.name} has no label {key!r}." for key in unknown]
        return _row(after, there), "\n".join([f"{done} {after.name}: {_shown(there)}.", *remarks])

    return targets.each(args, chosen, change, describe)


def _row(agent: Agent, labels: dict[str, str]) -> Row:
    copied: dict[str, Json] = dict(labels)
    return {"id": agent.id, "name": agent.name, "labels": copied}


def _shown(labels: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in labels.items()) or "no labels"


def _print(args: Namespace, chosen: Sequence[Agent]) -> int:
    if args.format != "human":
        table = [_row(agent, agent.record.labels) for agent in chosen]
        rows(args, table, [], "agents", targets.errors(args))
    else:
        labels: list[Row] = [
            {"name": agent.name, "label": key, "value": value}
            for agent in chosen
            for key, value in agent.record.labels.items()
        ]
        rows(args, labels, ["name", "label", "value"], empty="No labels found")
    return targets.warn_failures(args)
