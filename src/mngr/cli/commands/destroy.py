"""`mngr destroy`: move agents to the trash."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import can_ask, confirm, declined, say, warn
from mngr.cli.app.spread import spread
from mngr.cli.commands import gc
from mngr.errors import MngrError, PartialFailure, Refused
from mngr.model.state import ALIVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.api import Agent, Risk
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Stop agents and move their work directories and records to the trash. `mngr restore` brings them \
back unchanged until `mngr gc` empties the trash, after `trash.keep`. A branch without new commits \
is removed; a branch with commits is kept unless you pass -b.

Uncommitted files, and commits that are on no other branch, are listed first, and you are asked to \
confirm. On a terminal you are also asked before a running agent is destroyed. --force and --yes \
skip the questions; without a terminal, an agent with work at risk is destroyed only with one of \
them."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_targets(parser, "agents to destroy", session=True)
    add = parser.add_argument
    add("-f", "--force", action="store_true", help="do not ask, even if work is at risk")
    help = "also remove the agent's branch with its commits, if mngr created it"
    add("-b", "--remove-created-branch", action="store_true", help=help)

    help = "run `mngr gc` afterwards (default: no)"
    add("--gc", action="switch", default=False, help=help)
    parser.add_dry_run()
    parser.add_yes()
    parser.examples = [
        ("destroy an agent", "mngr destroy foo"),
        ("skip the questions, remove the branch", "mngr destroy -f -b foo"),
        ("undo it", "mngr restore foo"),
        (
            "destroy all agents that are DONE",
            "mngr list --include 'state == \"DONE\"' --ids | mngr rm -",
        ),
    ]
    parser.see_also = ["mngr-restore", "mngr-stop", "mngr-gc"]


def run(args: Namespace) -> int:
    api = Mngr(args.config, args.registry)
    chosen = targets.agents(args, api)
    agreed = _agreed(args, api, chosen)
    targets.outlive_terminal()
    outcome = None
    if not args.dry_run:
        outcome = api.destroy_many(agreed, drop_branch=args.remove_created_branch)

    def destroy(agent: Agent) -> Sequence[str]:
        return outcome(agent).remarks if outcome else ()

    def describe(agent: Agent, remarks: Sequence[str]) -> tuple[Row, str]:
        row: Row = {"id": agent.id, "name": agent.name, "destroyed": not args.dry_run}
        if args.dry_run:
            return row, f"Would destroy {agent.name}."
        for remark in remarks:
            warn(f"{agent.name}: {remark}")
        return row, f"Destroyed {agent.name} (undo: mngr restore {agent.name})."

    receipt: list[dict[str, Json]] = []

    def collect() -> dict[str, Json]:
        receipt.extend(gc.collected(args, api.leftovers()))
        if args.format != "json":
            gc.show(args, receipt)
        return {"leftovers": [*receipt]}

    code = targets.each(args, agreed, destroy, describe, collect if args.gc else dict)
    return PartialFailure.exit_code if gc.failed(receipt) else code


def _agreed(args: Namespace, api: Mngr, chosen: Sequence[Agent]) -> list[Agent]:
    """Return the agents to destroy, after all questions are answered."""
    agreed, refused = [], []
    for agent, risk in spread(chosen, lambda each: _risk(args, api, each)):
        if isinstance(risk, MngrError):  # its risk is unknown, so it is kept
            args.failures.append(risk)
            continue
        try:
            if _may_go(args, agent, risk):
                agreed.append(agent)
            else:
                args.failures.append(Refused(f"{agent.name} was kept"))
        except Refused as error:  # nobody can be asked
            refused.append(error)
    if refused or not agreed:
        targets.raise_all([*args.failures, *refused])
    return agreed


def _risk(args: Namespace, api: Mngr, agent: Agent) -> Risk | None:
    _ = agent.record  # raises if it cannot be read
    if (args.force or args.yes) and not args.dry_run:
        return None
    return api.risk(agent, drop_branch=args.remove_created_branch)


def _may_go(args: Namespace, agent: Agent, risk: Risk | None) -> bool:
    if args.dry_run:
        if risk:
            say(args, f"{agent.name} has {risk}.")
        return True
    if args.force or args.yes:
        return True
    if risk:
        otherwise = "use --force to destroy it anyway"
        reason = f"{agent.name} has {risk}"
        return confirm(args, "Destroy it?", reason=reason, otherwise=otherwise)
    if agent.state not in ALIVE:
        return True
    if can_ask(args):
        return confirm(args, "Destroy it?", reason=f"{agent.name} is {agent.state}")
    return not declined(args)
