"""`mngr man`: the manual page of mngr or of a command."""

from __future__ import annotations

from mngr.cli.app.manual import command_page, overview_page, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.cli.app.parser import Namespace, Parser

SETTINGS_OPTIONAL = True


def configure(parser: Parser) -> None:
    parser.description = (
        "Show the manual page of mngr, or of a command. On a terminal it is shown in a pager: "
        "$MNGR_PAGER, $PAGER or less. `mngr help COMMAND` and `mngr COMMAND --help` show the same "
        "page; `mngr COMMAND -h` shows one screen of it."
    )
    word = parser.add_argument("topic", metavar="COMMAND", nargs="?", help="command or alias")
    parser.completes(word, "command")
    parser.examples = [
        ("read the manual of `create`", "mngr man create"),
        ("read about mngr and its exit codes", "mngr man"),
        ("save a page as plain text", "mngr man tmr > tmr.txt"),
    ]
    parser.see_also = ["help"]


def run(args: Namespace) -> int:
    if not args.topic:
        return show(overview_page(args.registry))
    from mngr.cli.app.main import make_parser

    return show(command_page(make_parser(args.registry, args.topic)))
