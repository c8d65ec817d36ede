"""`mngr limit`: show and change the limits of agents."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import rows
from mngr.cli.commands.limit_values import NONE, add_limits
from mngr.model.durations import exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Agent, Limits
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Change the limits of agents, even while they are running. An agent that exceeds a limit is \
stopped: its work, screen and conversation are kept, and its state is FAILED, with exit code 124 \
and the reason. Raise the limit and use `mngr start` to continue.

Without an option, print the limits."""

NOTES = """\
Time is counted from the last start of the agent. Tokens and cost are counted over the whole \
conversation and include reads and writes of the model's cache. The cost is computed from the \
setting `prices`; a model without a price counts as the most expensive one listed. Token and cost \
limits require an agent type that reports its usage."""

NAMES = ("timeout", "max_cost", "max_tokens")


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_targets(parser, "agents")
    add_limits(parser.add_argument_group("Limits"), or_none=True)
    parser.add_dry_run()
    parser.examples = [
        ("print the limits", "mngr limit foo"),
        ("set a time and a cost limit", "mngr limit foo --timeout 2h --max-cost 5"),
        ("remove the time limit", "mngr limit foo --timeout none"),
        ("limit all running agents", "mngr list --running --ids | mngr limit - --timeout 3h"),
    ]
    parser.see_also = ["mngr-create", "mngr-usage", "mngr-list"]


def run(args: Namespace) -> int:
    changes = {name: _value(getattr(args, name)) for name in NAMES if getattr(args, name)}
    api = Mngr(args.config, args.registry)
    chosen = targets.agents(args, api)
    if not changes:
        return _print(args, api, chosen)

    def change(agent: Agent) -> tuple[Limits, Limits]:
        if args.dry_run:
            old = api.limits(agent)
            return old, old.updated(changes)
        return api.limit(agent, changes)

    def describe(agent: Agent, result: tuple[Limits, Limits]) -> tuple[Row, str]:
        old, new = result
        row: dict[str, Json] = {"id": agent.id, "name": agent.name}
        row |= {"old": old.to_json(), "new": new.to_json()}
        would = " (dry run)" if args.dry_run else ""
        return row, f"{agent.name}: {old} -> {new}{would}"

    return targets.each(args, chosen, change, describe)


def _value(given: object) -> float | None:
    return None if given == NONE else given  # type: ignore[return-value]  # parsed as a number


def _print(args: Namespace, api: Mngr, chosen: Sequence[Agent]) -> int:
    table: list[dict[str, Json]] = [
        {"id": agent.id, "name": agent.name, **api.limits(agent).to_json()} for agent in chosen
    ]
    for row in table if args.format == "human" else ():
        row["timeout"] = None if row["timeout"] is None else exactly(float(str(row["timeout"])))
    rows(args, table, ["name", *NAMES], "agents", targets.errors(args))
    return targets.warn_failures(args)
