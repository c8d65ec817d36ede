"""Values from settings, templates and batches, as if they had come from the command line."""

from __future__ import annotations

import argparse

from mngr.cli.app.parser import Pairs, Parser, repeats
from mngr.errors import UnknownSetting, UsageError, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.model.struct import Json

_UNSETTABLE = ("help", "setting")


def coerce(parser: Parser, values: dict[str, Json], where: str) -> dict[str, object]:
    """Keys are long options with `_`; null counts as not given; `where` is named in errors."""
    known = _keys(parser)
    given = argparse.Namespace()
    for key, value in values.items():
        if key not in known:
            near = nearest(key, tuple(known))
            hint = f"did you mean {near!r}?" if near else f"see `{parser.prog} --help`"
            raise UnknownSetting(f"{where}: {parser.prog!r} has no option {key!r}", hint)
        try:
            if value is not None:
                _give(parser, given, known[key], f"--{key.replace('_', '-')}", value)
        except argparse.ArgumentError as error:
            raise UsageError(f"{where}: {key}: {error.message}") from None
        except UsageError as error:
            raise UsageError(f"{where}: {key}: {_unlabelled(error)}", error.hint) from None
    return dict(vars(given))


def _keys(parser: Parser) -> dict[str, argparse.Action]:
    found = {}
    for action in parser.options:
        for option in action.option_strings:
            negative = isinstance(action, argparse.BooleanOptionalAction) and "--no-" in option
            if option.startswith("--") and not negative and action.dest not in _UNSETTABLE:
                found[option[2:].replace("-", "_")] = action
    return found


def _give(
    parser: Parser, given: argparse.Namespace, action: argparse.Action, option: str, value: Json
) -> None:
    def act(converted: object) -> None:
        # Declared for text, but argparse itself hands over whatever `type` made of it.
        action(parser, given, converted, option)  # type: ignore[arg-type]

    if action.nargs == 0:
        _give_flag(parser, given, action, option, value)
    elif action.nargs == "?" and value is True:
        act(action.const)
    elif not repeats(action):
        act(_checked(parser, action, value))
    elif action.nargs in ("+", "*"):
        act([_checked(parser, action, item) for item in _items(value)])
    else:
        for item in _items(_pairs(value) if isinstance(action, Pairs) else value):
            act(_checked(parser, action, item))


def _give_flag(
    parser: Parser, given: argparse.Namespace, action: argparse.Action, option: str, value: Json
) -> None:
    if not isinstance(value, bool):
        raise UsageError(f"expected true or false, not {value!r}")
    if value:
        action(parser, given, [], option)
    elif isinstance(action, argparse.BooleanOptionalAction):
        action(parser, given, [], f"--no-{option[2:]}")
    elif isinstance(action.const, bool):
        setattr(given, action.dest, not action.const)


def _items(value: Json) -> list[Json]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _pairs(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return [f"{key}={_text(inner)}" for key, inner in value.items()]


def _checked(parser: Parser, action: argparse.Action, value: Json) -> object:
    if isinstance(value, bool):
        raise UsageError(f"expected a string or number, not {_text(value)}")
    checked = parser._get_value(action, _text(value))
    parser._check_value(action, checked)
    return checked


def _text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)):
        raise UsageError(f"expected a string or number, not {value!r}")
    return str(value)


def _unlabelled(error: UsageError) -> str:
    """Return the message without the option's name, because the key is shown already."""
    name, colon, message = error.message.partition(": ")
    return message if colon and name.startswith("--") else error.message
