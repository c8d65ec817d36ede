"""`mngr help`: the commands, or one command's manual."""

from __future__ import annotations

from mngr.cli.app.manual import SUMMARY, command_page, grouped, print_paged, show
from mngr.cli.app.output import bold, rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.cli.app.parser import Namespace, Parser
    from mngr.plugins.registry import Registry

SETTINGS_OPTIONAL = True


def configure(parser: Parser) -> None:
    parser.description = (
        "List all commands or, with COMMAND, show its whole manual. On a terminal the text is "
        "shown in a pager: $MNGR_PAGER, $PAGER or less. `mngr COMMAND -h` shows one screen."
    )
    word = parser.add_argument("topic", metavar="COMMAND", nargs="?", help="command or alias")
    parser.completes(word, "command")
    parser.examples = [
        ("list all commands", "mngr help"),
        ("read the manual of a command", "mngr help list"),
        ("print the names of all commands", "mngr help --format '{name}'"),
    ]
    parser.see_also = ["man"]


def run(args: Namespace) -> int:
    if args.topic:
        from mngr.cli.app.main import make_parser

        return show(command_page(make_parser(args.registry, args.topic)))
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
