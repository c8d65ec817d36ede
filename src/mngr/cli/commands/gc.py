"""`mngr gc`: remove leftovers that mngr created."""

from __future__ import annotations

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import cell, many, rows, say, warn
from mngr.cli.app.spread import exit_code
from mngr.errors import MngrError, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.api import Leftover
    from mngr.cli.app.output import Row
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.model.struct import Json

DESCRIPTION = """\
Remove what mngr created and no longer uses: destroyed agents that have been in the trash for \
longer than `trash.keep`; removed `mngr tmr` runs of the same age; names of agents that no longer \
exist; files of interrupted writes; and, for purged agents, mirrors, the refs that kept their \
commits, and branches whose commits are all on another branch. Agents whose creation or removal \
was interrupted are moved to the trash. mngr removes only items that it created and recorded, and \
nothing on hosts that do not answer.

One line is printed for each item; --dry-run prints the same lines."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    help = "clean up only hosts of this provider"
    parser.add_argument("--provider", default="", help=help, completes="provider")
    parser.add_dry_run()
    parser.examples = [
        ("list what would be removed", "mngr gc --dry-run"),
        ("remove leftovers", "mngr gc"),
        ("empty the whole trash", "mngr gc -S trash.keep=0s"),
    ]
    parser.see_also = ["mngr-destroy", "mngr-restore", "mngr-doctor"]


def run(args: Namespace) -> int:
    targets.check_providers(args, [args.provider] if args.provider else [])
    api = Mngr(args.config, args.registry)
    leftovers = api.leftovers(args.provider)
    targets.footnotes(api)
    receipt = collected(args, leftovers)
    show(args, receipt)
    return exit_code(failed(receipt), len(receipt))


def collected(args: Namespace, leftovers: Sequence[Leftover]) -> list[dict[str, Json]]:
    """Remove each leftover and return a row for it; continue after a failure."""
    receipt: list[dict[str, Json]] = []
    for each in leftovers:
        try:
            error = None if args.dry_run else _removed(each)
        except NotFound:  # another gc removed it meanwhile, or a restore took it back
            continue
        if error is not None:
            warn(f"{each.kind} {each.what}: {error}")
        row: dict[str, Json] = {"kind": each.kind, "what": each.what, "why": each.why}
        receipt.append({**row, "removed": not args.dry_run and error is None, "error": error})
    return receipt


def failed(receipt: Sequence[Mapping[str, Json]]) -> int:
    """Return how many leftovers could not be removed."""
    return sum(row["error"] is not None for row in receipt)


def _removed(leftover: Leftover) -> str | None:
    try:
        leftover.remove()
    except NotFound:
        raise
    except (MngrError, OSError) as error:
        return str(error)
    return None


def show(args: Namespace, receipt: Sequence[Row]) -> None:
    if args.format != "human":
        fields = ["kind", "what", "why", "removed", "error"]
        rows(args, receipt, [], "leftovers", fields=fields)
        return
    for row in receipt:
        if row["error"] is None:
            print(f"{cell(row['kind'])} {cell(row['what'])}: {cell(row['why'])}")
    count = len(receipt) - failed(receipt)
    done = f"{'Would remove' if args.dry_run else 'Removed'} {many(count, 'leftover')}."
    say(args, done if receipt else "Nothing to remove.")
