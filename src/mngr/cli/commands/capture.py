"""`mngr capture`: print an agent's screen."""

from __future__ import annotations

import sys

from mngr.api import Mngr
from mngr.cli.app import targets
from mngr.cli.app.output import one

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from mngr.cli.app.parser import Parser

DESCRIPTION = """\
Prints what the agent's terminal shows, without the empty rows at its end. Of an agent that has \
stopped, what it showed last."""


def configure(parser: Parser) -> None:
    parser.description = DESCRIPTION
    targets.add_target(parser)
    parser.add_argument("--full", action="store_true", help="with what has scrolled away")
    parser.add_argument("--window", default="", metavar="NAME", help="an extra window of it")
    parser.add_argument("--ansi", action="store_true", help="with colours, as escape sequences")
    parser.examples = [
        ("what it shows now", "mngr capture tests"),
        ("everything it has printed", "mngr capture tests --full | less"),
        ("another of its windows, in colour", "mngr capture tests --window log --ansi"),
    ]
    parser.see_also = ["mngr-connect", "mngr-event"]


def run(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)
    agent = targets.agents(args, api, [args.target])[0]
    screen = api.capture(agent, window=args.window, full=args.full, ansi=args.ansi)
    if args.format == "human":
        sys.stdout.write(screen)
    else:
        window = args.window or "agent"
        one(args, {"id": agent.id, "name": agent.name, "window": window, "screen": screen}, "")
    return 0
