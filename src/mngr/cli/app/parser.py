"""The parser of commands: a strict argparse with the errors and common options of mngr."""

from __future__ import annotations

import argparse

from mngr.cli.app.templates import check_format
from mngr.errors import UsageError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn, TypeVar

    from mngr.model.struct import Json

    ActionT = TypeVar("ActionT", bound=argparse.Action)

# argparse looks up a translation of every heading it prints. There is none, and the search
# imports `locale` on each start.
vars(argparse)["_"] = str

VALUE_OPTIONS = ("--format", "--setting", "-S")
FLAG_OPTIONS = tuple("--quiet -q --verbose -v --headless --dry-run --help -h --version".split())


class _Strict(argparse.ArgumentParser):
    """An ArgumentParser that raises a UsageError of one line."""

    def __init__(self, command: str, prefix_chars: str = "-") -> None:
        super().__init__(
            prog=f"mngr {command}".rstrip(),
            add_help=False,
            allow_abbrev=False,
            prefix_chars=prefix_chars,
        )
        self._formatter = argparse.HelpFormatter(self.prog, width=80)

    def _get_formatter(self) -> argparse.HelpFormatter:
        # add_argument asks for one each time, and a fresh one measures the terminal by way of
        # shutil, which is slower to import than everything here together.
        return self._formatter

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        message = message.replace("the following arguments are required:", "missing")
        raise UsageError(message, f"see `{self.prog} --help`")

    def _get_value(self, action: argparse.Action, arg_string: str) -> object:
        try:
            value: object = super()._get_value(action, arg_string)
        except UsageError as error:
            raise UsageError(f"{label(action)}: {error.message}", error.hint) from None
        return value

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = tuple(str(choice) for choice in action.choices)
        near = nearest(str(value), choices)
        hint = f"did you mean {near!r}?" if near else f"choose from {', '.join(choices)}"
        raise UsageError(f"{label(action)}: unknown value {str(value)!r}", hint)


class Parser(_Strict):
    """The options and arguments of a command, and the other texts of its manual.

    Options and words may be mixed in any order. Words are parsed after the options, by a
    parser of their own: argparse by itself takes `a --flag b` for one word too many.
    """

    def __init__(self, command: str, summary: str = "", aliases: Sequence[str] = ()) -> None:
        self.words = _Strict(command, prefix_chars="\0")
        self.completions: dict[argparse.Action, str | Sequence[str]] = {}
        super().__init__(command)
        self.command = command
        self.summary = summary
        self.aliases = tuple(aliases)
        self.examples: list[tuple[str, str]] = []
        self.see_also: list[str] = []
        self.most_used: Sequence[str] = ()
        """The options that `-h` shows, for a command with more than ten."""
        self.verbs: Mapping[str, tuple[str, str, Sequence[str]]] = {}
        """For each verb: its arguments, what it does, and its options."""
        self.notes = ""
        self.rest_name: str | None = None
        self.named: tuple[argparse.Action, argparse.Action] | None = None
        self.common = self.add_argument_group("Common options")
        self.base: dict[str, object] = {}
        _add_common(self)

    def add_dry_run(self) -> None:
        """Add --dry-run, for commands that change or remove something."""
        self.common.add_argument(
            "--dry-run", action="store_true", help="show what would be done, without doing it"
        )

    def add_yes(self) -> None:
        """Add --yes, for commands that ask questions."""
        self.common.add_argument(
            "-y", "--yes", action="store_true", help="answer yes to every question"
        )

    def completes(self, action: ActionT, kind: str | Sequence[str]) -> ActionT:
        """Say what completes an argument: a list of words, one of the kinds in complete.py, or
        `module:function`, which is called with the home and the command's words."""
        self.completions[action] = kind
        return action

    def names(self, word: argparse.Action, option: argparse.Action) -> None:
        """Let a repeatable option say what the word says: its values go before the words there."""
        self.named = (word, option)

    @property
    def options(self) -> list[argparse.Action]:
        return self._actions

    @property
    def positionals(self) -> list[argparse.Action]:
        return self.words._actions

    def option(self, name: str) -> argparse.Action:
        """Return the option that is written `name`."""
        return self._option_string_actions[name]

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the values in argv over those of `layer`. --help skips the checks of arguments."""
        own, rest = cut(argv)
        own = list(self._joined(own))
        args, words = self.parse_known_args(own, argparse.Namespace(**self._start()))
        self._refuse_options(words)
        args.rest = rest if self.rest_name else []
        if not args.help:
            words += [] if self.rest_name else rest
            self._parse_words(self._with_named(words, args), args)
        return args

    def given(self, args: argparse.Namespace) -> list[argparse.Action]:
        """Return the command's own options that the command line changed."""
        start = self._start()
        own = [each for each in self._actions if each not in self.common._group_actions]
        return [
            each for each in own if getattr(args, each.dest) != start.get(each.dest, each.default)
        ]

    def layer(self, values: dict[str, object]) -> None:
        """Set defaults below the command line: repeatable options add up, others replace."""
        self.base = overlay(self.base, values)
        for action in self._actions:
            action.required = action.required and action.dest not in self.base

    def coerce(self, values: dict[str, Json], where: str) -> dict[str, object]:
        """Return the values of the options as if given on the command line."""
        from mngr.cli.app.coercion import coerce

        return coerce(self, values, where)

    def _joined(self, argv: Sequence[str]) -> Iterator[str]:
        """Join options with their values, so that a value may start with a dash."""
        words = iter(argv)
        for word in words:
            action = self._option_string_actions.get(word)
            if action is None or action.nargs is not None:
                yield word
                continue
            value = next(words, None)
            if value is None or value[:1] != "-" or value == "-":
                yield word
                yield from () if value is None else (value,)
            else:
                yield f"{word}={value}" if word[:2] == "--" else f"{word}{value}"

    def _add_action(self, action: ActionT) -> ActionT:
        if action.option_strings:
            return super()._add_action(action)
        return self.words._add_action(action)

    def _start(self) -> dict[str, object]:
        """Return the start values: empty lists for repeatable options, over those of `layer`."""
        assert all(action.option_strings for action in self._actions), "a word in a group"
        bare = [action for action in self._actions if repeats(action) and action.default is None]
        start: dict[str, object] = {}
        for action in bare:
            start[action.dest] = {} if isinstance(action, Pairs) else []
        return {**start, **self.base}

    def _refuse_options(self, words: list[str]) -> None:
        for word in words:
            if word[:1] == "-" and word != "-" and " " not in word and not _is_number(word):
                raise UsageError(f"unknown option {word!r}", self._option_hint(word))

    def _option_hint(self, word: str) -> str:
        near = nearest(word.partition("=")[0], tuple(self._option_string_actions))
        if near:
            return f"did you mean {near!r}?"
        if self.rest_name:
            return f"what is not for mngr goes after `--`; see `{self.prog} --help`"
        return f"see `{self.prog} --help`"

    def _with_named(self, words: list[str], args: argparse.Namespace) -> list[str]:
        if self.named is None:
            return words
        word, option = self.named
        at = self.positionals.index(word)
        if at > len(words):
            return words
        words = words[:at] + getattr(args, option.dest) + words[at:]
        if not words and word.nargs in (None, "+"):
            raise UsageError("name an agent", "see `mngr list`")
        return words

    def _parse_words(self, words: list[str], args: argparse.Namespace) -> None:
        _, extra = self.words.parse_known_args(words, args)
        if extra:
            raise UsageError(f"unexpected argument {extra[0]!r}", f"see `{self.prog} --help`")


class Pairs(argparse.Action):
    """`--label K=V`, repeatable: a dict. In settings and batches it may be an object as well."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        key, equals, value = str(values).partition("=")
        if not key or not equals:
            raise UsageError(f"{label(self)}: expected KEY=VALUE, not {str(values)!r}")
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), key: value})


def _add_common(parser: Parser) -> None:
    add = parser.common.add_argument
    add(
        "--format",
        type=check_format,
        default="human",
        metavar="FORMAT",
        help="output format: human, json, jsonl, or a template ('{name}\\t{state}')",
    )
    add("-q", "--quiet", action="store_true", help="print only ids and errors")
    add("-v", "--verbose", action="store_true", help="print more details, and tracebacks of errors")
    add(
        "-S",
        "--setting",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a setting for this command; repeatable",
    )
    add("--headless", action="store_true", help="never ask; fail where an answer is required")
    help = "show one screen of help; --help shows the whole manual"
    add("-h", "--help", action="store_true", help=help)


def label(action: argparse.Action) -> str:
    """Return the name of an argument for errors: its longest option, or its metavar."""
    if action.option_strings:
        return max(action.option_strings, key=len)
    return str(action.metavar or action.dest)


def repeats(action: argparse.Action) -> bool:
    """Whether an option gathers values instead of keeping the last one."""
    gathering = (Pairs, argparse._AppendAction, argparse._AppendConstAction)
    return isinstance(action, gathering) or action.nargs in ("+", "*")


def count(text: str, least: int = 0) -> int:
    """Return a number on the command line that is not below `least`."""
    if not text.isdecimal() or int(text[:9]) < least:
        above = f" above {least - 1}" if least else ""
        raise UsageError(f"expected a number{above}, not {text[:40]!r}")
    return int(text[:9])


def cut(argv: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split a command line at the first `--`."""
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def overlay(below: dict[str, object], above: dict[str, object]) -> dict[str, object]:
    """Merge two layers: lists add up, dicts merge by key, other values are replaced."""
    merged = dict(below)
    for name, value in above.items():
        under = merged.get(name)
        if isinstance(under, list) and isinstance(value, list):
            value = under + value
        elif isinstance(under, dict) and isinstance(value, dict):
            value = {**under, **value}
        merged[name] = value
    return merged


def split_command(argv: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return the options before the command, the command ("" without one), and the rest."""
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-", "--"):
        at += 2 if wants_value(argv[at]) else 1
    before = list(argv[:at])
    return before, argv[at] if at < len(argv) else "", list(argv[at + 1 :])


def wants_value(word: str) -> bool:
    """Whether the value of this common option is the next word; unknown ones are refused."""
    if word.startswith("--"):
        name, equals, _ = word.partition("=")
        if name not in VALUE_OPTIONS + FLAG_OPTIONS:
            _refuse_common(name)
        return name in VALUE_OPTIONS and not equals
    for at, letter in enumerate(word[1:], start=2):
        if f"-{letter}" in VALUE_OPTIONS:
            return at == len(word)
        if f"-{letter}" not in FLAG_OPTIONS:
            _refuse_common(f"-{letter}")
    return False


def _refuse_common(name: str) -> NoReturn:
    near = nearest(name, VALUE_OPTIONS + FLAG_OPTIONS)
    hint = f"did you mean {near!r}?" if near else "options of a command follow its name"
    raise UsageError(f"unknown option {name!r}", hint)


def settings_in(argv: Sequence[str]) -> list[str]:
    """Return the values of -S and --setting, which are required before the parser is known."""
    own, _ = cut(argv)
    found = []
    for at, word in enumerate(own):
        if word in ("-S", "--setting"):
            found += own[at + 1 : at + 2]
        elif word.startswith("--setting="):
            found.append(word.partition("=")[2])
        elif word.startswith("-S"):
            found.append(word[2:])
    return found


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
