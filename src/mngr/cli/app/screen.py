"""`-h`: one screen about mngr, a command, or a verb of a command."""

from __future__ import annotations

from mngr.cli.app.manual import SUMMARY, option_help, option_term, synopsis
from mngr.cli.app.options import HIDDEN
from mngr.cli.app.output import bold
from mngr.cli.app.rendering import fill, text_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.cli.app.parser import Parser
    from mngr.plugins.registry import Registry

    Lines = Sequence[tuple[str, str]]

WIDTH = 80
MOST_OPTIONS = 10
MOST_EXAMPLES = 3
COMMANDS = "create list connect message exec diff merge stop destroy restore".split()
EXAMPLES = (
    ("run the tests on a new branch", "mngr create tests -- make test"),
    ("give a coding agent a prompt", "mngr create fix claude -m 'fix the build'"),
    ("one agent for each failing test", "mngr tmr run --only failing"),
)


def overview_screen(registry: Registry) -> str:
    """Return the screen about mngr, with its most used commands."""
    known = [registry.commands[name] for name in COMMANDS if name in registry.commands]
    entries = [(command.name, command.help) for command in known]
    usage = "mngr [OPTIONS] COMMAND [ARGUMENTS]"
    return _screen(usage, SUMMARY, "Commands", entries, EXAMPLES, "mngr help for all commands")


def command_screen(parser: Parser, argv: Sequence[str]) -> str:
    """Return the screen about a command, or about the verb of it that `argv` names."""
    verb = next((word for word in argv if word in parser.verbs), "")
    if verb:
        return _verb_screen(parser, verb)
    more = f"mngr help {parser.command} for all options"
    title, entries = "Options", _options(parser, parser.most_used)
    if parser.verbs:
        title, entries = "Verbs", [(name, help) for name, (_, help, _) in parser.verbs.items()]
        more = f"{parser.prog} VERB -h for the options of a verb\n{more}"
    return _screen(synopsis(parser), parser.summary, title, entries, parser.examples, more)


def _verb_screen(parser: Parser, verb: str) -> str:
    words, summary, names = parser.verbs[verb]
    usage = f"{parser.prog} {verb} [OPTIONS] {words}".rstrip()
    own = [each for each in parser.examples if f"{parser.prog} {verb}" in each[1]]
    more = f"mngr help {parser.command} for all options"
    return _screen(usage, summary, "Options", _options(parser, names, verb), own, more)


def _options(parser: Parser, names: Sequence[str], verb: str = "") -> Lines:
    """Return ten options: the named ones or all of the command, then common ones."""
    common = [each for each in parser.common.options if each.dest != "help"]
    if verb:  # its own options include --dry-run and --yes where it uses them
        common = [each for each in common if each.dest not in ("dry_run", "yes")]
    own = [each for group in parser.groups for each in group.options]
    first = [parser.option(name) for name in names] if names or verb else own
    shown = [each for each in dict.fromkeys([*first, *common]) if each.help != HIDDEN]
    return [(option_term(each, short=True), option_help(each)) for each in shown[:MOST_OPTIONS]]


def _screen(
    usage: str, summary: str, title: str, entries: Lines, examples: Lines, more: str
) -> str:
    lines = [f"usage: {usage}", f"{summary[:1].upper()}{summary[1:]}.", "", bold(f"{title}:")]
    column = _column([name for name, _ in entries])
    for name, text in entries:
        space = " " * (column - 2 - len(name))
        lines.append(f"  {bold(name)}{space}{shortened(text, text_width() - column)}")
    lines += _examples([each for each in examples if len(each[1]) <= WIDTH - 2][:MOST_EXAMPLES])
    return "\n".join([*lines, "", more]) + "\n"


def _examples(examples: Lines) -> list[str]:
    """Return commands with their captions as comments, where these fit."""
    column = _column([command for _, command in examples])
    if any(column + len(f"# {caption}") > WIDTH for caption, _ in examples):
        column = 0
    lines = ["", bold("Examples:")] if examples else []
    for caption, command in examples:
        line = f"  {command}  ".ljust(column) + f"# {caption}"
        lines.append(line if len(line) <= WIDTH else f"  {command}")
    return lines


def _column(names: Sequence[str]) -> int:
    return max(map(len, names), default=0) + 4


def shortened(text: str, width: int) -> str:
    """Return as many leading clauses of a help text as fit on one line."""
    while len(text) > width:
        end = max(text.rfind(mark) for mark in (" (", "; ", ", ", ": "))
        if end <= 0:
            return f"{(fill(text, max(width - 4, 1)) or [''])[0]} ..."
        text = text[:end]
        if text.count("(") > text.count(")"):
            text = text[: text.rindex("(")].rstrip()
    return text
