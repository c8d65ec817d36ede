"""Options and words of a command line, as a command declares them, and the values they take."""

from __future__ import annotations

from mngr.errors import UsageError, suggestion
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FLAGS = ("store_true", "switch")
ACTIONS = ("store", "append", "pairs", *FLAGS)
HIDDEN = "==SUPPRESS=="
"""The help of an option that is not shown; argparse writes it the same way."""


class Option:
    """An option, or a word if its name has no dash. The attributes are named as in argparse."""

    def __init__(self, names: Sequence[str], dest: str, action: str) -> None:
        assert action in ACTIONS, action
        self.option_strings = list(names) if names[0][0] == "-" else []
        if action == "switch":
            self.option_strings += [f"--no-{name[2:]}" for name in names if name[:2] == "--"]
        long = [name for name in names if name[:2] == "--"]
        self.dest = dest or [*long, names[0]][0].lstrip("-").replace("-", "_")
        self.action = action
        self.nargs: str | None = None
        self.type: Callable[[str], object] = str
        self.default: object = None
        self.const: object = None
        self.choices: Sequence[str] | None = None
        self.metavar = ""
        self.help = ""
        self.required = False
        self.completion: str | Sequence[str] = ()

    @property
    def is_flag(self) -> bool:
        return self.action in FLAGS

    @property
    def repeats(self) -> bool:
        """Return whether the option collects values instead of keeping the last one."""
        return self.action in ("append", "pairs")

    @property
    def label(self) -> str:
        """Return the name of the option for errors: its longest name, or its metavar."""
        return max(self.option_strings, key=len, default=self.metavar or self.dest)

    @property
    def start(self) -> object:
        """Return the initial value."""
        if self.default is not None:
            return self.default
        empty: dict[str, object] = {"append": [], "pairs": {}, "store_true": False}
        return empty.get(self.action)

    def converted(self, text: str) -> object:
        """Return the value of a text, or raise a UsageError that does not name the option."""
        try:
            value = self.type(text)
        except (TypeError, ValueError):
            kind = getattr(self.type, "__name__", "")
            raise UsageError(f"invalid {kind} value: {text!r}") from None
        if self.choices is not None and value not in self.choices:
            hint = suggestion(text, self.choices, f"choose from {', '.join(self.choices)}")
            raise UsageError(f"unknown value {text!r}", hint)
        return value

    def put(self, values: dict[str, object], text: str) -> None:
        """Convert a text and keep it, or add it to those of a repeatable option."""
        value, before = self.converted(text), values.get(self.dest)
        if isinstance(before, list):
            value = [*before, value]
        elif isinstance(before, dict):
            key, equals, value = text.partition("=")
            if not key or not equals:
                raise UsageError(f"expected KEY=VALUE, not {text!r}")
            value = {**before, key: value}
        values[self.dest] = value

    def give(self, values: dict[str, object], value: Json) -> None:
        """Keep a value from settings, a template or a batch as if it was an argument."""
        if self.is_flag:
            if not isinstance(value, bool):
                raise UsageError(f"expected true or false, not {value!r}")
            values[self.dest] = value
        elif self.nargs == "?" and value is True:
            values[self.dest] = self.const
        elif not self.repeats:
            self.put(values, _text(value))
        else:
            values[self.dest] = {} if self.action == "pairs" else []
            for item in self._items(value):
                self.put(values, _text(item))

    def _items(self, value: Json) -> Sequence[Json]:
        if self.action == "pairs" and isinstance(value, dict):
            words = {True: "true", False: "false"}
            flags = {key: words[each] for key, each in value.items() if isinstance(each, bool)}
            return [f"{key}={_text(each)}" for key, each in {**value, **flags}.items()]
        return value if isinstance(value, (list, tuple)) else [value]


def _text(value: Json) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        raise UsageError(f"expected a string or number, not {shown}")
    return str(value)


class Group:
    """Options under one heading of the manual."""

    def __init__(self, title: str, by_name: dict[str, Option], words: list[Option]) -> None:
        self.title = title
        self.options: list[Option] = []
        self.by_name = by_name
        self._words = words

    def add_argument(
        self,
        *names: str,
        action: str = "store",
        nargs: str | None = None,
        type: Callable[[str], object] = str,
        default: object = None,
        const: object = None,
        choices: Sequence[str] | None = None,
        metavar: str = "",
        dest: str = "",
        help: str = "",
        required: bool = False,
        completes: str | Sequence[str] = (),
    ) -> Option:
        """Declare an option or, without a dash, a word.

        `action` is store, store_true, append (repeatable), pairs (K=V, repeatable) or switch
        (--x and --no-x); `nargs` is ?, or for words also * or +. `completes` is what a shell
        completes: a list of words, one of the kinds in complete.py, or `module:function`, which is
        called with the home and the command's words.
        """
        option = Option(names, dest, action)
        assert nargs in ((None, "?") if option.option_strings else (None, "?", "*", "+")), nargs
        option.nargs, option.type, option.default, option.const = nargs, type, default, const
        option.choices, option.metavar, option.help = choices, metavar, help
        option.required, option.completion = required, completes
        (self.options if option.option_strings else self._words).append(option)
        self.by_name.update(dict.fromkeys(option.option_strings, option))
        return option


def overlay(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
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


def count(text: str, least: int = 0, most: int = 0) -> int:
    """Return a number on the command line from `least` to `most`; 0 is no limit."""
    number = int(text[:9]) if text.isdecimal() else -1
    if number < least or 0 < most < number:
        within = f" from {least} to {most}" if most else f" above {least - 1}" if least else ""
        raise UsageError(f"expected a number{within}, not {text[:40]!r}")
    return number
