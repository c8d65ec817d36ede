"""`mngr limit`: see and change what an agent may use."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import rows, warn
from mngr.cli.commands.limit_values import NONE, add_limits
from mngr.errors import PartialFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from mngr.api import Agent, Limits
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Change what agents may use, also while they run. One that goes over a limit is ended: its work, \
its screen and its conversation stay, and its state says FAILED, with exit code 124 and the \
reason. Raise the limit and `mngr start` it, and it goes on.

Without an option, the limits are printed."""

NOTES = """\
Time counts from the agent's last start; tokens and cost count over its whole conversation, with \
what was read from and written to the model's cache. Cost is worked out from the settings \
`prices`; a model without a price counts as the dearest one there. Only agents that tell what \
they use can be limited in tokens and cost."""

NAMES = ("timeout", "max_cost", "max_tokens")


def configure(parser: Parser) -> None:
    parser.description, parser.notes = DESCRIPTION, NOTES
    targets.add_targets(parser, "whose limits")
    add_limits(parser.add_argument_group("Limits"), or_none=True)
    parser.add_dry_run()
    parser.examples = [
        ("see the limits of an agent", "mngr limit foo"),
        ("give it another hour, and 5 dollars in all", "mngr limit foo --timeout 2h --max-cost 5"),
        ("let it run for as long as it likes", "mngr limit foo --timeout none"),
        ("limit those at work", "mngr list --running --ids | mngr limit - --timeout 3h"),
    ]
    parser.see_also = ["mngr-create", "mngr-usage", "mngr-list"]


def run(args: argparse.Namespace) -> int:
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


def _print(args: argparse.Namespace, api: Mngr, chosen: Sequence[Agent]) -> int:
    table: list[dict[str, Json]] = [
        {"id": agent.id, "name": agent.name, **api.limits(agent).to_json()} for agent in chosen
    ]
    rows(args, table, ["name", *NAMES], "agents")
    for error in args.failures:
        warn(str(error))
    return PartialFailure.exit_code if args.failures else 0
