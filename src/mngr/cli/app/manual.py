"""Manual pages: one structure per command, shown as text for --help and as roff for man(1).

`python -m mngr.cli.app.manual --write man` writes the pages, `--check man` says which are stale.
"""

from __future__ import annotations

import argparse
import os
import sys

from mngr.cli.app.rendering import Block, Page, Section, as_roff, as_text, text_width
from mngr.errors import MngrError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mngr.cli.app.parser import Parser
    from mngr.plugins.registry import Command, Registry

SUMMARY = "run coding agents, or any command, side by side"

EXIT_STATUS = (
    ("0", "done"),
    ("1", "failed"),
    ("2", "the command line or a setting is wrong"),
    ("3", "some targets failed, others are done"),
    ("4", "not found, or ambiguous"),
    ("5", "a host did not answer"),
    ("124", "timed out"),
)

DESCRIPTION = """\
An agent is a program in a terminal of its own, with a work directory of its own, on some
host. mngr makes agents, shows what they are doing, talks to them and puts them away. What it
removes can be brought back for a while.

Common options may stand before the command word as well as after it."""


def show(parser: Parser) -> int:
    """--help."""
    sys.stdout.write(as_text(command_page(parser), text_width()))
    return 0


def command_page(parser: Parser) -> Page:
    """What a command's parser says about it."""
    also = ["mngr(1)", *(f"mngr-{name.removeprefix('mngr-')}(1)" for name in parser.see_also)]
    sections = (
        Section(title="SYNOPSIS", blocks=(_code(synopsis(parser)),)),
        Section(title="DESCRIPTION", blocks=tuple(_description(parser))),
        Section(title="ARGUMENTS", blocks=tuple(_arguments(parser))),
        Section(title="OPTIONS", blocks=tuple(_options(parser))),
        Section(title="NOTES", blocks=tuple(_paragraphs(parser.notes))),
        Section(title="EXAMPLES", blocks=tuple(_examples(parser.examples))),
        Section(title="EXIT STATUS", blocks=tuple(_exit_status(parser.exit_status))),
        Section(title="SEE ALSO", blocks=(Block(kind="text", text=", ".join(also)),)),
    )
    return Page(name=f"mngr-{parser.command}", summary=parser.summary, sections=sections)


def overview_page(registry: Registry) -> Page:
    """mngr(1): the commands by group, and the options they share."""
    from mngr.cli.app.parser import Parser

    sections = (
        Section(title="SYNOPSIS", blocks=(_code("mngr [OPTIONS] COMMAND [ARGUMENTS]"),)),
        Section(title="DESCRIPTION", blocks=tuple(_paragraphs(DESCRIPTION))),
        Section(title="COMMANDS", blocks=tuple(_commands(registry))),
        Section(title="OPTIONS", blocks=tuple(_options(Parser("")))),
        Section(title="EXIT STATUS", blocks=tuple(_exit_status([]))),
    )
    return Page(name="mngr", summary=SUMMARY, sections=sections)


def grouped(registry: Registry) -> dict[str, list[Command]]:
    """Commands by the group they belong to, in order of registration."""
    groups: dict[str, list[Command]] = {}
    for command in registry.commands.values():
        groups.setdefault(command.group, []).append(command)
    return groups


def synopsis(parser: Parser) -> str:
    """One line: `mngr create [OPTIONS] [ADDRESS] [TYPE] [-- ARGS...]`."""
    words = [_usage(action) for action in parser.positionals]
    rest = [f"[-- {parser.rest_name}...]"] if parser.rest_name else []
    return " ".join([parser.prog, "[OPTIONS]", *words, *rest])


def _usage(action: argparse.Action) -> str:
    word = _metavar(action)
    shapes = {"?": f"[{word}]", "*": f"[{word}...]", "+": f"{word}..."}
    return shapes.get(str(action.nargs), word)


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper().replace("_", "-")


def _description(parser: Parser) -> Iterator[Block]:
    yield from _paragraphs(parser.description or f"{parser.summary.capitalize()}.")
    if parser.aliases:
        short = ", ".join(f"`mngr {alias}`" for alias in parser.aliases)
        word = "Alias" if len(parser.aliases) == 1 else "Aliases"
        yield Block(kind="text", text=f"{word}: {short}.")


def _arguments(parser: Parser) -> Iterator[Block]:
    for action in parser.positionals:
        if action.help != argparse.SUPPRESS:
            yield Block(kind="entry", term=_metavar(action), text=option_help(action))


def _options(parser: Parser) -> Iterator[Block]:
    """The command's own groups in order; the common options come last."""
    groups = [group for group in parser._action_groups if group is not parser.common]
    for group in [*groups, parser.common]:
        actions = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        own = group is parser._optionals
        if actions and not own:
            yield Block(kind="heading", text=group.title or "")
        for action in actions:
            yield Block(kind="entry", term=_term(action), text=option_help(action))


def _term(action: argparse.Action) -> str:
    options = [o for o in action.option_strings if not o.startswith("--no-")]
    if isinstance(action, argparse.BooleanOptionalAction):
        options = [o.replace("--", "--[no-]", 1) if o[:2] == "--" else o for o in options]
    else:
        options = list(action.option_strings)
    value = "" if action.nargs == 0 else f" {_usage(action)}"
    return ", ".join(options) + value


def option_help(action: argparse.Action) -> str:
    # Python 3.11 adds this itself to --[no-] options, later versions do not.
    text = (action.help or "").removesuffix(" (default: %(default)s)")
    # argparse's own rule: `%` starts a field, `%%` is a percent sign.
    words = {"choices": ", ".join(map(str, action.choices or ())), "prog": "mngr"}
    text = text % {**vars(action), **words} if "%" in text else text
    named = action.choices and not all(str(choice) in text for choice in action.choices)
    choices = ", ".join(map(str, action.choices or ())) if named else ""
    return f"{text} ({choices})" if choices else text


def _examples(examples: Sequence[tuple[str, str]]) -> Iterator[Block]:
    for caption, command in examples:
        yield Block(kind="text", text=caption)
        yield _code(command)


def _exit_status(special: Sequence[tuple[str, str]]) -> Iterator[Block]:
    for code, meaning in ({**dict(EXIT_STATUS), **dict(special)}).items():
        yield Block(kind="entry", term=code, text=meaning)


def _commands(registry: Registry) -> Iterator[Block]:
    for group, commands in grouped(registry).items():
        yield Block(kind="heading", text=group)
        for command in commands:
            yield Block(kind="entry", term=", ".join(command.words), text=command.help)


def _paragraphs(text: str) -> Iterator[Block]:
    """Paragraphs are parted by blank lines; indented lines stay as they are."""
    for part in text.strip("\n").split("\n\n"):
        lines = part.split("\n")
        if all(line.startswith("    ") for line in lines):
            yield _code("\n".join(line[4:] for line in lines))
        elif part.strip():
            yield Block(kind="text", text=part)


def _code(text: str) -> Block:
    return Block(kind="code", text=text)


def pages(registry: Registry) -> Iterator[Page]:
    """Every page, mngr(1) first."""
    from mngr.cli.app.main import make_parser

    yield overview_page(registry)
    for name in registry.names("command"):
        yield command_page(make_parser(registry, name))


def own_registry() -> Registry:
    """The built-ins and the plugins that come with mngr, whatever else the user has."""
    from mngr.plugins.entry_points import scan
    from mngr.plugins.registry import load_registry

    registry = load_registry(None)
    for folder in sys.path:
        points = [point for point in scan(folder or ".") if point.distribution == "mngr"]
        for point in points:
            registry.add_plugin(point)
        if points:  # of a distribution that is there twice the first counts
            break
    return registry


def _wanted() -> dict[str, str]:
    """File names and their roff."""
    return {f"{page.name}.1": as_roff(page) for page in pages(own_registry())}


def write(folder: str) -> int:
    """Write every page, and remove those of commands that are no more."""
    os.makedirs(folder, exist_ok=True)
    wanted = _wanted()
    for name in _stale(folder, wanted):
        path = os.path.join(folder, name)
        if name in wanted:
            with open(path, "w", encoding="utf-8") as file:
                file.write(wanted[name])
        else:
            os.remove(path)
        print(f"{path} {'written' if name in wanted else 'removed'}")
    return 0


def check(folder: str) -> int:
    """Name each page that is missing, stale or superfluous."""
    wanted = _wanted()
    stale = _stale(folder, wanted)
    for name in stale:
        path = os.path.join(folder, name)
        fault = "superfluous" if name not in wanted else "stale"
        print(f"{path} is {fault if os.path.exists(path) else 'missing'}")
    return 1 if stale else 0


def _stale(folder: str, wanted: dict[str, str]) -> list[str]:
    found = os.listdir(folder) if os.path.isdir(folder) else []
    present = [name for name in found if name.startswith("mngr") and name.endswith(".1")]
    names = sorted({*wanted, *present})
    return [name for name in names if wanted.get(name) != _read(os.path.join(folder, name))]


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def main(argv: list[str]) -> int:
    actions = {"--write": write, "--check": check}
    if len(argv) != 2 or argv[0] not in actions:
        print("usage: python -m mngr.cli.app.manual --write|--check FOLDER", file=sys.stderr)
        return 2
    try:
        return actions[argv[0]](argv[1])
    except MngrError as error:
        print(f"mngr: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
