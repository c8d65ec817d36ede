"""`mngr plugin`: list, enable and disable plugins."""

from __future__ import annotations

from mngr.cli.app.output import print_result, rows, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import MngrError, NotFound, UsageError, suggestion
from mngr.model.struct import Json
from mngr.plugins.entry_points import EntryPoint
from mngr.plugins.registry import BUILTIN, Plugin, load_registry
from mngr.settings.edit import change
from mngr.settings.layers import Config, load_config, scope_file, settings_files

SCOPES = ("user", "project", "local")
KEY = "plugins.disabled"
HINT = f"see `mngr plugin list`; add built-in names to the setting {KEY} yourself"
FIELDS = ["name", "version", "enabled", "registers", "problem", "distribution", "module"]

DESCRIPTION = """\
A plugin adds agent types, providers of hosts, commands, and hooks that are called on events. \
Install it with pip or uv into the environment of mngr, or name its module in the setting \
plugins.modules.

`disable` adds the plugin to the setting plugins.disabled. A disabled plugin is not imported, so \
you can disable a broken plugin too."""

NOTES = """\
Names registered by a plugin must be unique: a name that is already taken is skipped, with a \
warning on standard error. plugins.disabled may also contain names of single commands, agent types \
and providers, including built-in ones."""


SCREENS = {
    "list": ("", "list plugins and what they add", []),
    "enable": ("NAME...", "enable plugins", ["--scope", "--dry-run"]),
    "disable": ("NAME...", "disable plugins", ["--scope", "--dry-run"]),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""


def configure(parser: Parser) -> None:
    parser.description, parser.notes, parser.verbs = DESCRIPTION, NOTES, SCREENS
    add = parser.add_argument
    add("verb", choices=("list", "enable", "disable"), metavar="VERB", help="list, enable, disable")
    help = "names or modules of plugins"
    add("names", nargs="*", default=[], metavar="NAME", help=help, completes="plugin")
    help = "settings file: %(choices)s (default: user)"
    add("--scope", choices=SCOPES, default="user", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("list plugins and what they add", "mngr plugin list"),
        ("disable a plugin", "mngr plugin disable hello"),
        ("enable it again", "mngr plugin enable hello"),
        ("disable it in this project only", "mngr plugin disable hello --scope local"),
    ]
    parser.see_also = ["mngr-config"]


def run(args: Namespace) -> int:
    args.parser.require_own(args, args.verb)
    if args.verb == "list":
        return _list(args)
    if not args.names:
        raise UsageError("missing NAME", f"write it like `mngr plugin {args.verb} NAME`")
    chosen = [_known(args, name) for name in args.names]
    before = _listed(args)
    after = _with(before, chosen) if args.verb == "disable" else _without(before, chosen)
    if after != before and not args.dry_run:
        value: list[Json] = [*after]
        path, private = scope_file(args.config, args.scope), args.scope == "user"
        change(args.config.home, path, ("plugins", "disabled"), value, private=private)
    return _report(args, list(dict.fromkeys(point.name for point in chosen)))


def _with(names: list[str], chosen: list[EntryPoint]) -> list[str]:
    missing = [each.name for each in chosen if not {each.name, each.module} & set(names)]
    return names + list(dict.fromkeys(missing))


def _without(names: list[str], chosen: list[EntryPoint]) -> list[str]:
    gone = {name for each in chosen for name in (each.name, each.module)}
    return [name for name in names if name not in gone]


def _list(args: Namespace) -> int:
    if args.names:
        raise UsageError(f"unexpected argument {args.names[0]!r}", "see `mngr plugin --help`")
    found = [_row(plugin) for plugin in _plugins(args)]
    if args.format == "human":
        found = [{**row, "registers": _spoken(row["registers"])} for row in found]
    columns = FIELDS[:5] if any(row["problem"] for row in found) else FIELDS[:4]
    rows(args, found, columns, "plugins", empty="No plugins found", fields=FIELDS)
    return 0


def _plugins(args: Namespace) -> list[Plugin]:
    return [plugin for plugin in args.registry.plugins if plugin.point.name != BUILTIN]


def _row(plugin: Plugin) -> dict[str, Json]:
    point = plugin.point
    return {
        "name": point.name,
        "version": point.version,
        "enabled": plugin.enabled,
        "registers": {kind: list(names) for kind, names in plugin.registers.items()},
        "problem": plugin.problem,
        "distribution": point.distribution,
        "module": point.module,
    }


def _spoken(registers: Json) -> str:
    assert isinstance(registers, dict)
    return ", ".join(
        f"{kind.replace('_', ' ').removesuffix('s')} {name}"
        for kind, names in registers.items()
        for name in (names if isinstance(names, list) else ())
    )


def _known(args: Namespace, name: str) -> EntryPoint:
    points = [plugin.point for plugin in _plugins(args)]
    for point in points:
        if name in (point.name, point.module):
            return point
    hint = suggestion(name, [point.name for point in points], HINT)
    raise NotFound(f"no plugin {name!r}", hint)


def _listed(args: Namespace) -> list[str]:
    """Return the list in the chosen file, or the one of the layers below."""
    files = list(settings_files(args.config.home, args.config.project).values())
    above = files[SCOPES.index(args.scope) + 1 :]
    config = args.config
    layers = [layer for layer in config.layers if layer.origin in ("default", *files)]
    below = [layer for layer in layers if layer.origin not in above]
    return Config(config.home, config.project, below).texts(KEY)


def _report(args: Namespace, names: list[str]) -> int:
    """Print the resulting state; a later layer or a broken plugin may change it."""
    enable = args.verb == "enable"
    if args.dry_run:
        for name in names:
            path = scope_file(args.config, args.scope)
            _say(args, name, f"Would {args.verb} {name} in {path}", enabled=enable)
        return 0
    config = load_config(args.setting)
    registry = load_registry(config)
    now = {plugin.point.name: plugin for plugin in registry.plugins}
    failed = False
    for name in names:
        if now[name].enabled is not enable:
            state = "enabled" if now[name].enabled else "disabled"
            hint = f"{KEY} comes from {config.origin(KEY)}"
            raise MngrError(f"{name} is still {state}", hint)
        _say(args, name, f"{name} is {args.verb}d", enabled=enable)
        if now[name].problem:
            warn(now[name].problem)
            failed = True
    return int(failed)


def _say(args: Namespace, name: str, text: str, *, enabled: bool) -> None:
    print_result(args, {"name": name, "enabled": enabled, "done": not args.dry_run}, text)
