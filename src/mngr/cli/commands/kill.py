"""`mngr kill`: same as `mngr stop --force`."""

from __future__ import annotations

from mngr.cli.commands import stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.cli.app.parser import Parser

DESCRIPTION = """\
Kill every process of the agents after one second instead of `stop.grace`; same as `mngr stop \
--force`. The work directory, branch and record are kept; `mngr start` starts the agent again."""

run = stop.run


def configure(parser: Parser) -> None:
    stop.configure(parser)
    parser.description = DESCRIPTION
    parser.option("--force").default = True
    parser.examples = [("kill an agent's program", "mngr kill foo")]
    parser.see_also = ["mngr-stop", "mngr-start", "mngr-destroy"]
