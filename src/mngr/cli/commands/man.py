"""`mngr man`: a manual page in the pager, or as text."""

from __future__ import annotations

import os
import sys

from mngr.cli.app.manual import command_page, overview_page
from mngr.cli.app.rendering import as_roff, as_text, text_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from mngr.cli.app.parser import Parser
    from mngr.cli.app.rendering import Page

SETTINGS_OPTIONAL = True


def configure(parser: Parser) -> None:
    parser.description = (
        "Show the manual page of mngr, or of a command, with man(1). Where there is no man "
        "program, or stdout is not a terminal, print it as plain text."
    )
    word = parser.add_argument("topic", metavar="COMMAND", nargs="?", help="a command or its alias")
    parser.completes(word, "command")
    parser.examples = [("read the manual of `create`", "mngr man create")]
    parser.see_also = ["help"]


def run(args: Namespace) -> int:
    page = _page(args)
    if not (sys.stdout.isatty() and _through_man(page)):
        sys.stdout.write(as_text(page, text_width()))
    return 0


def _page(args: Namespace) -> Page:
    if not args.topic:
        return overview_page(args.registry)
    from mngr.cli.app.main import make_parser

    return command_page(make_parser(args.registry, args.topic))


def _through_man(page: Page) -> bool:
    """Whether man showed it. A path with a slash is a file to every man; not all know `-l`."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="mngr-man-") as folder:
        path = os.path.join(folder, f"{page.name}.1")
        with open(path, "w", encoding="utf-8") as file:
            file.write(as_roff(page))
        return os.spawnvp(os.P_WAIT, "man", ["man", path]) == 0
