"""`mngr capture`: print an agent's screen."""

from __future__ import annotations

import sys

from mngr.cli.app import targets
from mngr.cli.app.output import one
from mngr.cli.app.parser import Namespace, Parser

DESCRIPTION = """\
Print the contents of an agent's terminal, without the empty rows at the end. For a stopped agent, \
print the last screen."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_target(parser)
    parser.add_argument("--full", action="store_true", help="include the scrollback")
    help = "print this extra window of the agent"
    parser.add_argument("--window", default="", metavar="NAME", help=help)
    parser.add_argument("--ansi", action="store_true", help="keep colours, as escape sequences")
    parser.examples = [
        ("print the screen", "mngr capture tests"),
        ("print it with the scrollback", "mngr capture tests --full | less"),
        ("print another window, in colour", "mngr capture tests --window log --ansi"),
    ]
    parser.see_also = ["mngr-connect", "mngr-event"]


def run(args: Namespace) -> int:
    api, agent = targets.one(args)
    screen = api.capture(agent, window=args.window, full=args.full, ansi=args.ansi)
    if args.format == "human":
        sys.stdout.write(screen)
    else:
        window = args.window or "agent"
        one(args, {"id": agent.id, "name": agent.name, "window": window, "screen": screen}, "")
    return 0
