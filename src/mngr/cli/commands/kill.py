"""`mngr kill`: `mngr stop --force`."""

from __future__ import annotations

from mngr.cli.commands import stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.cli.app.parser import Parser

DESCRIPTION = """\
End every process of the agents without waiting for `stop.grace`: the same as `mngr stop --force`. \
The work directory, branch and record stay; `mngr start` continues."""

run = stop.run


def configure(parser: Parser) -> None:
    stop.configure(parser)
    parser.description = DESCRIPTION
    parser.set_defaults(force=True)
    parser.examples = [("end an agent's program at once", "mngr kill foo")]
    parser.see_also = ["mngr-stop", "mngr-start", "mngr-destroy"]
