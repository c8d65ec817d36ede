"""Shell completion: on TAB a shell calls `mngr __complete -- WORDS...`, the unfinished word last.

It prints one candidate per line, `value<TAB>description`, and returns FILES if the shell should
complete file names itself. It runs between two key presses, so it imports the parser only if a
command or an option is known.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mngr.cli.app.options import Option
    from mngr.cli.app.parser import Parser
    from mngr.plugins.registry import Registry
    from mngr.settings.layers import Config

FILES = 9
"""The exit code for "complete file names here", which the scripts in `completions` test."""


def complete(words: list[str]) -> int:
    """Print the candidates for `words`. The shell scripts discard stderr and errors."""
    from mngr.plugins.registry import load_registry
    from mngr.settings.layers import load_config

    config = load_config([], strict=False)
    found = candidates(words or [""], load_registry(config), config)
    if found is None:
        return FILES
    for value, text in found.items():
        sys.stdout.write(f"{value}\t{text}\n" if text else f"{value}\n")
    return 0


def candidates(words: list[str], registry: Registry, config: Config) -> dict[str, str] | None:
    """Return candidates for the last word with descriptions, or None for file names."""
    *before, current = words
    if not before and not current.startswith("-"):
        found: dict[str, str] | None = {name: c.help for name, c in registry.commands.items()}
    else:
        parser, before = _parser(before, registry)
        found = _in_command(parser, before, current, registry, config)
    return found and {v: text for v, text in found.items() if v.startswith(current)}


def _parser(before: list[str], registry: Registry) -> tuple[Parser, list[str]]:
    """Return the parser for the last word, and the words before it that are for this parser."""
    from mngr.cli.app.main import make_parser
    from mngr.cli.app.parser import Parser, split_command

    options, command, after = split_command(before)
    if command:
        return make_parser(registry, command), after
    parser = Parser("")
    parser.common.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("command", completes="command")
    return parser, options


def _in_command(
    parser: Parser, before: list[str], current: str, registry: Registry, config: Config
) -> dict[str, str] | None:
    def values(actions: Iterable[Option], typed: str = current) -> dict[str, str] | None:
        return _values(actions, registry, config, [*before, typed])

    if "--" in before:
        return None if parser.rest_name else {}
    option, equals, typed = current.partition("=")
    if equals and option.startswith("--"):
        found = values(_taking_value(parser, option), typed)
        return found and {f"{option}={value}": text for value, text in found.items()}
    if before and (taking := _taking_value(parser, before[-1])):
        return values(taking)
    if current.startswith("-"):
        return _options(parser)
    return values(_words_at(parser, before))


def _options(parser: Parser) -> dict[str, str]:
    from mngr.cli.app.manual import option_help
    from mngr.cli.app.options import HIDDEN

    shown = [action for action in parser.every_option() if action.help != HIDDEN]
    return {
        option: option_help(action)
        for action in shown
        for option in action.option_strings
        if option.startswith("--")
    }


def _taking_value(parser: Parser, word: str) -> list[Option]:
    """Return the option whose value follows `word`, if there is one."""
    if not word.startswith("-") or "=" in word:
        return []
    short = f"-{word[-1]}"  # the last of `-qS` is what wants a value
    option = parser.by_name.get(word if word.startswith("--") else short)
    return [option] if option and not option.is_flag and option.nargs != "?" else []


def _words_at(parser: Parser, before: list[str]) -> list[Option]:
    """Return the arguments that may follow these words, including all after a repeatable one."""
    given = 0
    for at, word in enumerate(before):
        is_option = word.startswith("-") and word != "-"
        taking = _taking_value(parser, before[at - 1]) if at else []
        if not is_option and (not taking or (parser.alike and parser.alike[1] in taking)):
            given += 1
    for at, action in enumerate(parser.positionals):
        if action.nargs in ("*", "+"):
            return parser.positionals[at:]
        if at == given:
            return [action]
    return []


def _values(
    actions: Iterable[Option], registry: Registry, config: Config, words: list[str]
) -> dict[str, str] | None:
    found: dict[str, str] = {}
    for action in actions:
        kind = action.completion or tuple(action.choices or ())
        if kind == "file":
            return None
        found.update(_of_kind(kind, registry, config, words))
    return found


def _of_kind(
    kind: str | Sequence[str], registry: Registry, config: Config, words: list[str]
) -> dict[str, str]:
    if not isinstance(kind, str):
        return dict.fromkeys(kind, "")
    sources: dict[str, Callable[[], Iterable[str]]] = {
        "agent": lambda: _agents(config),
        "command": lambda: {name: c.help for name, c in registry.commands.items()},
        "config_key": _config_keys,
        "field": lambda: _fields(words[-1]),
        "plugin": lambda: [p.point.name for p in registry.plugins if p.point.distribution],
        "provider": lambda: registry.names("provider"),
        "setting": lambda: {f"{key}=": text for key, text in _config_keys().items()},
        "state": _states,
        "snapshot": lambda: _agents_or_snapshots(config, words),
        "template": lambda: [*config.table("create_templates")],
        "type": lambda: [*registry.names("agent_type"), *config.table("agent_types")],
    }
    found = _called(kind, config, words) if ":" in kind else sources[kind]()
    return found if isinstance(found, dict) else dict.fromkeys(found, "")


def _called(kind: str, config: Config, words: list[str]) -> Iterable[str]:
    """Call `module:function` with the words of the command, the unfinished one last."""
    from importlib import import_module

    module, _, name = kind.partition(":")
    found: Iterable[str] = getattr(import_module(module), name)(config.home, words)
    return found


def _fields(typed: str) -> list[str]:
    """Return completions of the last name in a list such as `name,state,ho`."""
    from mngr.cli.commands.list_rows import FIELDS

    head = typed[: typed.rfind(",") + 1]
    return [head + name for name in FIELDS.names()]


def _agents_or_snapshots(config: Config, words: list[str]) -> list[str]:
    """Return agents, or after `restore AGENT` and `destroy AGENT` the agent's snapshots."""
    given = [word for word in words[:-1] if not word.startswith("-")]
    if len(given) < 2 or given[0] not in ("restore", "destroy"):
        return _agents(config)
    from mngr.api import Mngr

    api = Mngr(config)
    return [each.name or str(each.number) for each in api.snapshots(api.resolve(given[1:2])[0])]


def trash(home: str, _: list[str]) -> list[str]:
    """Return the names of agents in the trash of this machine."""
    import json
    import os

    from mngr.api import read_agent_file
    from mngr.model.records import RECORD_LIMIT

    found = []
    folder = os.path.join(home, "trash")
    for each in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            note = read_agent_file(os.path.join(folder, each, "trash.json"), RECORD_LIMIT)
            found.append(str(json.loads(note)["name"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a removal under way
    return sorted(set(found))


def _agents(config: Config) -> list[str]:
    from mngr.api import LocalHost, remembered_names

    return sorted({*LocalHost(config.home).names(), *remembered_names(config.home)})


def _states() -> list[str]:
    from mngr.model.state import State

    return [str(state) for state in State]


def _config_keys() -> dict[str, str]:
    from mngr.settings.schema import SETTINGS

    return {key: text for key, (_, _, text) in SETTINGS.items() if "*" not in key}
