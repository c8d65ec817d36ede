"""The command `mngr hello`. `configure` declares its arguments, `run` executes it."""

from __future__ import annotations

import argparse

from mngr.api import Mngr
from mngr.cli.app.output import rows
from mngr.cli.app.parser import Parser


def configure(parser: Parser) -> None:
    parser.description = "Greet the named agents, or all agents."
    help = "agents to greet"
    parser.add_argument("names", nargs="*", metavar="NAME", help=help, completes="agent")
    parser.add_argument("--greeting", default="Hello", metavar="WORD", help="greeting to use")
    parser.examples = [
        ("greet all agents", "mngr hello"),
        ("greet in French", "mngr hello --greeting Salut"),
    ]
    parser.see_also = ["mngr-list"]


def run(args: argparse.Namespace) -> int:
    api = Mngr(args.config, args.registry)
    agents = api.resolve(args.names) if args.names else api.list()
    greetings = [{"name": a.name, "greeting": f"{args.greeting}, {a.name}!"} for a in agents]
    rows(
        args,
        greetings,
        ["greeting"],
        "greetings",
        empty="Nobody is here",
        fields=["name", "greeting"],
    )
    return 0
