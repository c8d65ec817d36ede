"""`mngr help` and `mngr man`: the commands, or the manual of one."""

from __future__ import annotations

from mngr.cli.app.main import make_parser
from mngr.cli.app.manual import SUMMARY, command_page, grouped, overview_page, print_paged, show
from mngr.cli.app.output import bold, rows
from mngr.cli.app.parser import Namespace, Parser
from mngr.plugins.registry import Registry

SETTINGS_OPTIONAL = True
PAGER = "On a terminal the text is shown in a pager: $MNGR_PAGER, $PAGER or less."
HELP = f"""\
List all commands or, with COMMAND, show its whole manual. {PAGER} `mngr COMMAND -h` shows one \
screen."""
MAN = f"""\
Show the manual page of mngr, or of a command. {PAGER} `mngr help COMMAND` and `mngr COMMAND \
--help` show the same page; `mngr COMMAND -h` shows one screen of it."""


def configure(parser: Parser) -> None:
    help = "command or alias"
    parser.add_argument("topic", metavar="COMMAND", nargs="?", help=help, completes="command")
    if parser.command == "man":
        parser.description, parser.see_also = MAN, ["help"]
        parser.examples = [
            ("read the manual of `create`", "mngr man create"),
            ("read about mngr and its exit codes", "mngr man"),
            ("save a page as plain text", "mngr man tmr > tmr.txt"),
        ]
    else:
        parser.description, parser.see_also = HELP, ["man"]
        parser.examples = [
            ("list all commands", "mngr help"),
            ("read the manual of a command", "mngr help list"),
            ("print the names of all commands", "mngr help --format '{name}'"),
        ]


def run(args: Namespace) -> int:
    if args.topic and args.topic != "mngr":
        return show(command_page(make_parser(args.registry, args.topic)))
    if args.command == "man" or args.topic:
        return show(overview_page(args.registry))
    if args.format == "human":
        print_paged(overview(args.registry))
    else:
        commands = args.registry.commands.values()
        rows(args, [command.to_json() for command in commands], [], "commands")
    return 0


def overview(registry: Registry) -> str:
    """Return a list of all commands, one line each."""
    width = max(len(", ".join(command.words)) for command in registry.commands.values())
    lines = [f"mngr: {SUMMARY}", "", "  mngr [OPTIONS] COMMAND [ARGUMENTS]"]
    for group, commands in grouped(registry).items():
        lines += ["", bold(group)]
        lines += [f"  {', '.join(c.words).ljust(width)}  {c.help}" for c in commands]
    lines += [
        "",
        "`mngr help COMMAND` shows a command's manual, `mngr COMMAND -h` one screen of it.",
    ]
    return "\n".join(lines) + "\n"
