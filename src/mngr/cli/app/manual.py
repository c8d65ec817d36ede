"""Manual pages, built from the parsers; `scripts/man.py` writes those for man(1)."""

from __future__ import annotations

import os
import sys

from mngr.cli.app.main import make_parser
from mngr.cli.app.options import HIDDEN, Option
from mngr.cli.app.parser import Parser
from mngr.cli.app.rendering import Page, Paragraph, Section, as_text, text_width
from mngr.plugins.registry import Command, Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUMMARY = "run coding agents, or any command, in parallel"

_FAILURE = """\
failure. `wait`: an agent is FAILED or LOST, or ended in a state other than the given ones; `usage \
--wait`: all agents ended before the condition was met; `answer`: the agent has no permission \
request; `merge`: a conflict, or every merge was undone; `doctor`: a problem was found; `host \
audit`: a host has a problem; `tutorial check`: the tutorial and its tests differ; \
`tmr`: every agent failed, or the run was cancelled"""

EXIT_STATUS = (
    ("0", "success"),
    ("1", _FAILURE),
    ("2", "wrong command line or setting"),
    ("3", "partial failure: some targets failed, others succeeded"),
    ("4", "not found, or ambiguous; `wait`: all agents vanished while waiting"),
    ("5", "a host did not answer"),
    ("124", "timed out"),
    ("130", "interrupted with Ctrl-C"),
    ("other", "`exec` and `create --foreground` exit with the code of the command they ran"),
)

DESCRIPTION = """\
An agent is a program that runs in its own terminal and its own work directory on some host. mngr
creates agents, shows their state, sends them messages and collects their work. Destroyed agents
can be restored until the trash is emptied.

Common options may be given before or after the command.

`mngr COMMAND -h` shows one screen of help. `mngr help COMMAND`, `mngr COMMAND --help` and
`mngr man COMMAND` show the whole manual, on a terminal in a pager: $MNGR_PAGER, $PAGER or less."""


def show(page: Page) -> int:
    """Print a page, on a terminal through the pager."""
    print_paged(as_text(page, text_width()))
    return 0


def print_paged(text: str) -> None:
    """Print a text, on a terminal through $MNGR_PAGER, $PAGER or less."""
    pager = os.environ.get("MNGR_PAGER") or os.environ.get("PAGER")
    if not pager and os.environ.get("TERM", "dumb") != "dumb":
        pager = "less"
    if not pager or not sys.stdout.isatty() or not _paged(text, pager):
        sys.stdout.write(text)


def _paged(text: str, pager: str) -> bool:
    """Run the pager, through a shell because it may have options. Return whether it was found."""
    import tempfile

    from mngr.api import call

    env = {"LESS": "FRX", "LV": "-c", **os.environ}
    with tempfile.NamedTemporaryFile("w", prefix="mngr-", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return call(["sh", "-c", f'{pager} <"$1"', "pager", file.name], env) not in (126, 127)


def command_page(parser: Parser) -> Page:
    """Return the manual page of a command."""
    also = ["mngr(1)", *(f"mngr-{name.removeprefix('mngr-')}(1)" for name in parser.see_also)]
    sections = (
        Section(title="SYNOPSIS", blocks=(_code(synopsis(parser)),)),
        Section(title="DESCRIPTION", blocks=tuple(_description(parser))),
        Section(title="VERBS", blocks=tuple(_verbs(parser))),
        Section(title="ARGUMENTS", blocks=tuple(_arguments(parser))),
        Section(title="OPTIONS", blocks=tuple(_options(parser))),
        Section(title="NOTES", blocks=tuple(_paragraphs(parser.notes))),
        Section(title="EXAMPLES", blocks=tuple(_examples(parser.examples))),
        Section(title="SEE ALSO", blocks=(Paragraph(kind="text", text=", ".join(also)),)),
    )
    return Page(name=f"mngr-{parser.command}", summary=parser.summary, sections=sections)


def overview_page(registry: Registry) -> Page:
    """Return mngr(1): the commands by group, the common options and the exit codes."""
    sections = (
        Section(title="SYNOPSIS", blocks=(_code("mngr [OPTIONS] COMMAND [ARGUMENTS]"),)),
        Section(title="DESCRIPTION", blocks=tuple(_paragraphs(DESCRIPTION))),
        Section(title="COMMANDS", blocks=tuple(_commands(registry))),
        Section(title="OPTIONS", blocks=tuple(_options(Parser("")))),
        Section(title="EXIT STATUS", blocks=tuple(_exit_status())),
    )
    return Page(name="mngr", summary=SUMMARY, sections=sections)


def grouped(registry: Registry) -> dict[str, list[Command]]:
    """Return the commands by group, in order of registration."""
    groups: dict[str, list[Command]] = {}
    for command in registry.commands.values():
        groups.setdefault(command.group, []).append(command)
    return groups


def synopsis(parser: Parser) -> str:
    """Return one line: `mngr create [OPTIONS] [ADDRESS] [TYPE] [-- ARGS...]`."""
    words = [_usage(action) for action in parser.positionals]
    words += [f"[-- {parser.rest_name}...]"] if parser.rest_name else []
    return " ".join([parser.prog, "[OPTIONS]", *([parser.usage] if parser.usage else words)])


def _usage(action: Option) -> str:
    word = _metavar(action)
    shapes = {"?": f"[{word}]", "*": f"[{word}...]", "+": f"{word}..."}
    return shapes.get(str(action.nargs), word)


def _metavar(action: Option) -> str:
    return action.metavar or action.dest.upper().replace("_", "-")


def _description(parser: Parser) -> Iterator[Paragraph]:
    yield from _paragraphs(parser.description or f"{parser.summary.capitalize()}.")
    if parser.aliases:
        short = ", ".join(f"`mngr {alias}`" for alias in parser.aliases)
        word = "Alias" if len(parser.aliases) == 1 else "Aliases"
        yield Paragraph(kind="text", text=f"{word}: {short}.")


def _verbs(parser: Parser) -> Iterator[Paragraph]:
    for name, (words, summary, _) in parser.verbs.items():
        yield Paragraph(kind="entry", term=f"{name} {words}".rstrip(), text=summary)


def _arguments(parser: Parser) -> Iterator[Paragraph]:
    for action in parser.positionals:
        if action.help != HIDDEN:
            yield Paragraph(kind="entry", term=_metavar(action), text=option_help(action))


def _options(parser: Parser) -> Iterator[Paragraph]:
    """Yield the option groups of the command, then the common options."""
    for group in [*parser.groups, parser.common]:
        actions = [a for a in group.options if a.help != HIDDEN]
        if actions and group.title:
            yield Paragraph(kind="heading", text=group.title)
        for action in actions:
            yield Paragraph(kind="entry", term=option_term(action), text=option_help(action))


def option_term(action: Option, short: bool = False) -> str:
    """Return the option as a manual writes it; `short` leaves out further long names."""
    options = action.option_strings
    if action.action == "switch":
        positive = [each for each in options if not each.startswith("--no-")]
        options = [each.replace("--", "--[no-]", 1) for each in positive]
    if short:
        long = [each for each in options if each.startswith("--")]
        options = [each for each in options if each not in long[1:]]
    value = "" if action.is_flag else f" {_usage(action)}"
    return ", ".join(options) + value


def option_help(action: Option) -> str:
    """Return the help of an option, with its choices unless the help names them.

    As in argparse, `%(default)s` and `%(choices)s` are fields, and `%%` is a percent sign.
    """
    choices = ", ".join(action.choices or ())
    text = action.help
    text = text % {**vars(action), "choices": choices} if "%" in text else text
    named = all(choice in text for choice in action.choices or ())
    return text if named else f"{text} ({choices})"


def _examples(examples: Sequence[tuple[str, str]]) -> Iterator[Paragraph]:
    for caption, command in examples:
        yield Paragraph(kind="text", text=caption)
        yield _code(command)


def _exit_status() -> Iterator[Paragraph]:
    for code, meaning in EXIT_STATUS:
        yield Paragraph(kind="entry", term=code, text=meaning)


def _commands(registry: Registry) -> Iterator[Paragraph]:
    for group, commands in grouped(registry).items():
        yield Paragraph(kind="heading", text=group)
        for command in commands:
            yield Paragraph(kind="entry", term=", ".join(command.words), text=command.help)


def _paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield paragraphs, separated by blank lines. Indented lines are kept as they are."""
    for part in text.strip("\n").split("\n\n"):
        lines = part.split("\n")
        if all(line.startswith("    ") for line in lines):
            yield _code("\n".join(line[4:] for line in lines))
        elif part.strip():
            yield Paragraph(kind="text", text=part)


def _code(text: str) -> Paragraph:
    return Paragraph(kind="code", text=text)


def pages(registry: Registry) -> Iterator[Page]:
    """Yield all pages, mngr(1) first."""
    yield overview_page(registry)
    for name in registry.names("command"):
        yield command_page(make_parser(registry, name))
