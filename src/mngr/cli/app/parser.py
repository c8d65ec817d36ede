"""The parser of commands: options and words in any order, and the texts of the manual.

It replaces argparse, which imports gettext and locale on every start, and rejects words after an
option as in `a --flag b`.
"""

from __future__ import annotations

import sys

from mngr.cli.app.options import Group, Option, overlay
from mngr.cli.app.templates import FORMATS, check_format
from mngr.errors import UnknownSetting, UsageError, suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence
    from typing import NoReturn

    from mngr.model.struct import Json

    Namespace = argparse.Namespace  # the type of something with any attributes
else:
    Namespace = type(sys.implementation)  # types.SimpleNamespace

VALUE_OPTIONS = ("--format", "--setting", "-S")
FLAG_OPTIONS = tuple("--quiet -q --verbose -v --headless --dry-run --help -h --version".split())


class Parser(Group):
    """The options and words of a command, and the other texts of its manual."""

    def __init__(self, command: str, summary: str = "", aliases: Sequence[str] = ()) -> None:
        self.positionals: list[Option] = []
        super().__init__("", {}, self.positionals)
        self.prog = f"mngr {command}".rstrip()
        self.see = "see `mngr help`" if command == "help" else f"see `{self.prog} --help`"
        self.command = command
        self.summary = summary
        self.aliases = tuple(aliases)
        self.description = ""
        self.examples: list[tuple[str, str]] = []
        self.see_also: list[str] = []
        self.most_used: Sequence[str] = ()
        """The options that `-h` shows, for a command with more than ten."""
        self.verbs: Mapping[str, tuple[str, str, Sequence[str]]] = {}
        """For each verb: its arguments, what it does, and its options."""
        self.notes = ""
        self.usage = ""
        """The words of the synopsis, if they differ from the declared ones."""
        self.rest_name: str | None = None
        """What follows `--`; without it, words follow there."""
        self.alike: tuple[Option, Option] | None = None
        """A word, and the repeatable option whose values go before the words at its place."""
        self.groups: list[Group] = [self]
        self.common = Group("Common options", self.by_name, self.positionals)
        self.base: dict[str, object] = {}
        self.typed: set[str] = set()
        """The options on the command line, as opposed to those in the settings."""
        _add_common(self.common)

    def add_argument_group(self, title: str) -> Group:
        """Add a group of options with its own heading."""
        self.groups.append(Group(title, self.by_name, self.positionals))
        return self.groups[-1]

    def add_dry_run(self) -> None:
        """Add --dry-run, for commands that change or remove something."""
        help = "show what would be done, without doing it"
        self.common.add_argument("--dry-run", action="store_true", help=help)

    def add_yes(self) -> None:
        """Add --yes, for commands that ask questions."""
        help = "answer yes to every question"
        self.common.add_argument("-y", "--yes", action="store_true", help=help)

    def every_option(self) -> list[Option]:
        """Return the options of all groups, the common ones last."""
        return [each for group in [*self.groups, self.common] for each in group.options]

    def option(self, name: str) -> Option:
        """Return the option that is written `name`."""
        return self.by_name[name]

    def parse(self, argv: Sequence[str]) -> Namespace:
        """Return the values in argv over those of `layer`. --help skips the checks of arguments."""
        own, rest = cut(argv)
        values = self._start()
        words = self._read_options(own, values)
        values["rest"] = rest if self.rest_name else []
        if not values["help"]:
            words += [] if self.rest_name else rest
            self._read_words(self._with_named(words, values), values)
        return Namespace(**values)

    def given(self, args: Namespace) -> list[Option]:
        """Return the command's own options that the command line changed."""
        start = self._start()
        own = [each for group in self.groups for each in group.options]
        return [each for each in own if getattr(args, each.dest) != start[each.dest]]

    def require_own(self, args: Namespace, verb: str, hint: str = "") -> None:
        """Raise UsageError for an option that `verbs` has only for other verbs."""
        for option in self.given(args):
            names = {*option.option_strings}
            takers = [each for each, (_, _, own) in self.verbs.items() if names & {*own}]
            if takers and verb not in takers:
                of = f"`{self.prog} {' or '.join(takers)}`"
                raise UsageError(f"{option.label} is an option of {of}", hint)

    def layer(self, values: dict[str, object]) -> None:
        """Set defaults below the command line: repeatable options add up, others replace."""
        self.base = overlay(self.base, values)

    def coerce(self, values: Mapping[str, Json], where: str) -> dict[str, object]:
        """Return the values of the options as if given on the command line.

        Keys are long options with `_`; null counts as not given; `where` is named in errors.
        """
        known = self._keys()
        given: dict[str, object] = {}
        for key, value in values.items():
            if key not in known:
                hint = suggestion(key, known, self.see)
                raise UnknownSetting(f"{where}: {self.prog!r} has no option {key!r}", hint)
            try:
                if value is not None:
                    known[key].give(given, value)
            except UsageError as error:
                raise UsageError(f"{where}: {key}: {error.message}", error.hint) from None
        return given

    def _keys(self) -> dict[str, Option]:
        found = {}
        for name, option in self.by_name.items():
            negative = option.action == "switch" and name.startswith("--no-")
            if name[:2] == "--" and not negative and option.dest not in ("help", "setting"):
                found[name[2:].replace("-", "_")] = option
        return found

    def _start(self) -> dict[str, object]:
        """Return the values before the command line is read."""
        return {each.dest: each.start for each in self.every_option()} | self.base

    def _read_options(self, argv: list[str], values: dict[str, object]) -> list[str]:
        """Read the options and return the words between them."""
        left, words = argv[::-1], []
        while left:
            word = left.pop()
            name, value = _split(word)
            option = self.by_name.get(name)
            if option is None:
                words.append(self._as_word(word))
                continue
            self.typed.add(option.dest)
            if option.is_flag:
                if value is not None and name[:2] == "--":
                    raise UsageError(f"{name} takes no value", self.see)
                left += [] if value is None else [f"-{value}"]
                values[option.dest] = option.action != "switch" or name[:5] != "--no-"
            elif value is None and option.nargs == "?" and (not left or self._is_option(left[-1])):
                values[option.dest] = option.const
            elif value is None and not left:
                raise UsageError(f"{name}: expected one argument", self.see)
            else:
                self._put(option, values, left.pop() if value is None else value)
        return words

    def _is_option(self, word: str) -> bool:
        known = _split(word)[0] in self.by_name
        return known or (word[:1] == "-" and word != "-" and not _odd(word))

    def _as_word(self, word: str) -> str:
        """Return a word that is not a known option; raise if it looks like one."""
        if self._is_option(word):
            raise UsageError(f"unknown option {word!r}", self._option_hint(word))
        return word

    def _option_hint(self, word: str) -> str:
        see = self.see
        if self.rest_name:
            see = f"arguments that are not for mngr go after `--`; {see}"
        return suggestion(word.partition("=")[0], self.by_name, see)

    def _put(self, option: Option, values: dict[str, object], text: str) -> None:
        try:
            option.put(values, text)
        except UsageError as error:
            raise UsageError(f"{option.label}: {error.message}", error.hint) from None

    def _with_named(self, words: list[str], values: dict[str, object]) -> list[str]:
        if self.alike is None:
            return words
        word, option = self.alike
        at = self.positionals.index(word)
        if at > len(words):
            return words
        given = values[option.dest]
        assert isinstance(given, list), "a repeatable option"
        words = words[:at] + given + words[at:]
        if not words and word.nargs in (None, "+"):
            raise UsageError("no agent given", "see `mngr list`")
        return words

    def _read_words(self, words: list[str], values: dict[str, object]) -> None:
        """Assign the words to the declared arguments, leaving enough for the later ones."""
        missing = [each for each in self.every_option() if each.required and not values[each.dest]]
        later = sum(each.nargs in (None, "+") for each in self.positionals)
        for each in self.positionals:
            needed = each.nargs in (None, "+")
            later -= needed
            most = len(words) if each.nargs in ("*", "+") else 1
            taken = words[: max(min(most, len(words) - later), needed)]
            words = words[len(taken) :]
            if needed and not taken:
                missing.append(each)
            self._put_words(each, taken, values)
        if missing:
            names = ", ".join(each.label for each in missing)
            raise UsageError(f"missing {names}", self.see)
        if words:
            raise UsageError(f"unexpected argument {words[0]!r}", self.see)

    def _put_words(self, word: Option, taken: list[str], values: dict[str, object]) -> None:
        many = word.nargs in ("*", "+")
        values[word.dest] = [] if many and (taken or word.default is None) else word.default
        for text in taken:
            self._put(word, values, text)


def _split(word: str) -> tuple[str, str | None]:
    """Return the name of an option and the value in the same word: `--x=v`, `-xv` or `-x=v`."""
    if word[:2] == "--":
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return word[:2], word[2:].removeprefix("=") if len(word) > 2 else None


def _odd(word: str) -> bool:
    """Return whether a word with a dash is not an option: a negative number, or several words."""
    try:
        float(word)
    except ValueError:
        return " " in word
    return True


def _add_common(group: Group) -> None:
    add = group.add_argument
    help = "output format: human, json, jsonl, or a template ('{name}\\t{state}')"
    add("--format", type=check_format, default="human", help=help, completes=FORMATS)
    add("-q", "--quiet", action="store_true", help="print only ids and errors")
    add("-v", "--verbose", action="store_true", help="print more details, and tracebacks of errors")
    help = "override a setting for this command; repeatable"
    add("-S", "--setting", action="append", metavar="KEY=VALUE", help=help, completes="setting")
    add("--headless", action="store_true", help="never prompt; fail if an answer is required")
    help = "show one screen of help; --help shows the whole manual"
    add("-h", "--help", action="store_true", help=help)


def cut(argv: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split a command line at the first `--`."""
    words = list(argv)
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1 :]


def split_command(argv: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return the options before the command, the command ("" without one), and the rest."""
    at = 0
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in ("-", "--"):
        at += 2 if wants_value(argv[at]) else 1
    before = list(argv[:at])
    return before, argv[at] if at < len(argv) else "", list(argv[at + 1 :])


def wants_value(word: str) -> bool:
    """Return whether the next word is the value of this common option; raise if it is unknown."""
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
    hint = suggestion(name, VALUE_OPTIONS + FLAG_OPTIONS, "options of a command follow its name")
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
