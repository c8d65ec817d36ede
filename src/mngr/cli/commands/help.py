"""`mngr help`: the commands, or one command's manual."""

from __future__ import annotations

import sys

from mngr.cli.app.manual import SUMMARY, grouped, show
from mngr.cli.app.output import bold, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from mngr.cli.app.parser import Parser
    from mngr.plugins.registry import Registry

SETTINGS_OPTIONAL = True


def configure(parser: Parser) -> None:
    parser.description = "Without COMMAND, list the commands; with it, show its manual."
    word = parser.add_argument("topic", metavar="COMMAND", nargs="?", help="a command or its alias")
    parser.completes(word, "command")
    parser.examples = [
        ("see what there is", "mngr help"),
        ("read the manual of a command", "mngr help list"),
        ("names of all commands, for a script", "mngr help --format '{name}'"),
    ]
    parser.see_also = ["man"]


def run(args: Namespace) -> int:
    if args.topic:
        from mngr.cli.app.main import make_parser

        return show(make_parser(args.registry, args.topic))
    if args.format == "human":
        sys.stdout.write(overview(args.registry))
    else:
        commands = args.registry.commands.values()
        rows(args, [command.to_json() for command in commands], [], "commands")
    return 0


def overview(registry: Registry) -> str:
    """Every command in one line each."""
    width = max(len(", ".join(command.words)) for command in registry.commands.values())
    lines = [f"mngr: {SUMMARY}", "", "  mngr [OPTIONS] COMMAND [ARGUMENTS]"]
    for group, commands in grouped(registry).items():
        lines += ["", bold(group)]
        lines += [f"  {', '.join(c.words).ljust(width)}  {c.help}" for c in commands]
    lines += ["", "`mngr help COMMAND` shows a command's manual."]
    return "\n".join(lines) + "\n"
