"""`mngr config`: read and change settings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from mngr.cli.app.main import command_named, make_parser
from mngr.cli.app.output import one, print_result, rows, warn
from mngr.cli.app.parser import Namespace, Parser
from mngr.errors import MngrError, NotFound, UsageError
from mngr.model.struct import Json
from mngr.plugins.registry import Registry
from mngr.settings.edit import change
from mngr.settings.file import read_settings
from mngr.settings.layers import Config, Layer, new_project, read_value, scope_file, settings_files
from mngr.settings.schema import (
    check,
    check_known,
    check_one,
    join_key,
    leaves,
    lookup,
    nest,
    split_key,
)

SETTINGS_OPTIONAL = True  # this command repairs broken settings
SCOPES = ("user", "project", "local")

DESCRIPTION = """\
Settings come from several layers; later layers override earlier ones: built-in defaults, the \
user's settings.toml, the project's .mngr/settings.toml, its .mngr/settings.local.toml, MNGR__A__B \
variables, -S a.b=c, and the options of a command."""

NOTES = """\
VALUE is parsed as TOML if it is valid TOML (3, true, ["a", "b"]), otherwise it is a string. Quote \
names that contain a dot: providers."a.b".region.

`set`, `edit` and `path` use the project's settings.toml if the project has a .mngr directory, and \
the user's settings.toml otherwise. A setting whose name contains token, key, password or secret \
is written to the user's settings.toml. `unset` removes a setting from the file that contains it.

MNGR_HEADLESS=1 sets `headless`, MNGR_PREFIX sets `prefix`. An unknown key in a file or variable \
is an error in `mngr config list` and `mngr doctor`, and a warning in other commands."""


SCREENS = {
    "list": ("", "list all settings", ["--origin", "--scope", "--show-secrets"]),
    "get": ("KEY", "print a setting", ["--show-secrets"]),
    "set": ("KEY VALUE", "change a setting", ["--scope", "--dry-run"]),
    "unset": ("KEY", "remove a setting from a file", ["--scope", "--dry-run"]),
    "edit": ("", "open a settings file in your editor", ["--scope"]),
    "path": ("", "print the path of a settings file", ["--scope"]),
}
"""What `-h` shows about each verb: its arguments, what it does, and its options."""


def configure(parser: Parser) -> None:
    parser.description, parser.verbs = DESCRIPTION, SCREENS
    parser.notes = NOTES
    add = parser.add_argument
    add("verb", choices=tuple(_VERBS), metavar="VERB", help="list, get, set, unset, edit or path")
    help = "name of a setting, such as trash.keep"
    add("key", nargs="?", metavar="KEY", help=help, completes="config_key")
    add("value", nargs="?", metavar="VALUE", help="value for `set`")
    scope = "settings file: %(choices)s (default: project if it has a .mngr directory, else user)"
    add("--scope", choices=SCOPES, help=scope)
    add("--origin", action="store_true", help="`list`: show where each value comes from")
    help = "`list` and `get`: show passwords, tokens and keys"
    add("--show-secrets", action="store_true", help=help)
    parser.add_dry_run()
    parser.examples = [
        ("list all settings and their origin", "mngr config list --origin"),
        ("keep destroyed agents for a month", "mngr config set --scope user trash.keep 30d"),
        (
            "label all new agents of this project",
            "mngr config set --scope project commands.create.label '[\"team=core\"]'",
        ),
        ("reset to the default", "mngr config unset trash.keep"),
        ("edit the user settings", "mngr config edit --scope user"),
    ]
    parser.see_also = ["mngr-create"]


def run(args: Namespace) -> int:
    args.parser.require_own(args, args.verb)
    words = SCREENS[args.verb][0].split()
    given = [word for word in (args.key, args.value) if word is not None]
    usage = f"write it like `{' '.join(('mngr config', args.verb, *words))}`"
    if len(given) < len(words):
        raise UsageError(f"missing {words[len(given)]}", usage)
    if len(given) > len(words):
        raise UsageError(f"unexpected argument {given[len(words)]!r}", usage)
    try:
        return _VERBS[args.verb](args)
    except UsageError as error:
        if str(error) not in map(str, args.config.faults):
            raise
        return error.exit_code  # broken settings were reported before this call


def _list(args: Namespace) -> int:
    layers = args.config.layers
    if args.scope is not None:
        path = _path(args)
        layers = [layer for layer in layers if layer.origin == path]
    view = Config(args.config.home, args.config.project, layers)
    problems: list[Json] = [str(p) for layer in layers for p in refusals(args.registry, layer)]
    found = [
        {"key": key, "value": _masked(args, split_key(key)[-1], value), "origin": view.origin(key)}
        for key, value in sorted(leaves(view.values))
    ]
    columns = _FIELDS if args.origin else _FIELDS[:2]
    rows(args, found, columns, "settings", problems, "No settings found", _FIELDS)
    return UsageError.exit_code if problems or args.config.faults else 0


def _get(args: Namespace) -> int:
    parts, value = split_key(args.key), args.config.get(args.key)
    if value is None:
        check_known(parts)
        raise NotFound(f"{args.key} is not set")
    for problem in args.config.faults:  # the value may come from an invalid layer
        raise problem
    human = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        value = {name: _masked(args, name, inner) for name, inner in value.items()}
        human = "\n".join(f"{key} = {json.dumps(v)}" for key, v in leaves(value, parts))
    one(args, {"key": args.key, "value": value, "origin": args.config.origin(args.key)}, human)
    return 0


def _set(args: Namespace) -> int:
    parts, path = split_key(args.key), _path(args)
    value = read_value(parts, args.value)
    check_one(parts, value)
    for refusal in refusals(args.registry, Layer(origin="", values=nest(parts, value))):
        raise refusal
    if not args.dry_run:
        change(args.config.home, path, parts, value, private=_scope(args) == "user")
        if _scope(args) == "local":
            _hide_from_git(os.path.dirname(path))
    return _done(args, "set", path)


def _unset(args: Namespace) -> int:
    parts, path = split_key(args.key), _path(args)
    if lookup(read_settings(path) or {}, parts) is None:
        origin = args.config.origin(args.key)
        other = "it has its default value" if origin == "default" else f"it comes from {origin}"
        raise NotFound(f"{args.key} is not set in {path}", origin and other)
    if not args.dry_run:
        change(args.config.home, path, parts, None, private=_scope(args) == "user")
    return _done(args, "unset", path)


def _edit(args: Namespace) -> int:
    path = _path(args)
    if not args.dry_run:
        from mngr.cli.app.terminal import edit

        os.makedirs(os.path.dirname(path), 0o700 if _scope(args) == "user" else 0o777, True)
        edit(path)
        try:
            values = read_settings(path) or {}
            check(values, path)
            for refusal in refusals(args.registry, Layer(origin=path, values=values)):
                raise refusal
        except MngrError as error:
            warn(str(error))
            return error.exit_code
    return _done(args, "edit", path)


def _show_path(args: Namespace) -> int:
    path = _path(args)
    one(args, {"scope": _scope(args), "path": path, "exists": os.path.exists(path)}, path)
    return 0


_VERBS = {
    "list": _list,
    "get": _get,
    "set": _set,
    "unset": _unset,
    "edit": _edit,
    "path": _show_path,
}
_FIELDS = ["key", "value", "origin"]


def _scope(args: Namespace) -> str:
    """Return the scope to change: the project if there is one.

    Secrets never go to a file that is committed. `unset` uses the file that has the setting.
    """
    if args.scope:
        return str(args.scope)
    files = settings_files(args.config.home, _project(args))
    parts = split_key(args.key) if args.key else ()
    if args.verb == "unset":
        has = [scope for scope in files if _sets(files[scope], parts)]
        return has[-1] if has else "user"
    return "project" if "project" in files and not any(map(_names_secret, parts)) else "user"


def _sets(path: str, parts: tuple[str, ...]) -> bool:
    try:
        return lookup(read_settings(path) or {}, parts) is not None
    except UsageError:
        return False


def _project(args: Namespace) -> str:
    """Return the project's `.mngr` directory, even without settings, or "" outside a project."""
    if args.config.project:
        return str(args.config.project)
    try:
        folder = new_project(os.getcwd(), args.config.home, os.environ)
    except (UsageError, FileNotFoundError):
        return ""
    return folder if os.path.isdir(folder) else ""


def _path(args: Namespace) -> str:
    return scope_file(args.config, _scope(args))


def _done(args: Namespace, verb: str, path: str) -> int:
    row: dict[str, Json] = {"key": args.key, "scope": _scope(args), "path": path}
    what = f"{verb} {args.key} in {path}" if args.key else f"{verb} {path}"
    human = f"Would {what}" if args.dry_run else what[0].upper() + what[1:]
    print_result(args, {**row, "done": not args.dry_run}, human)
    return 0


def _hide_from_git(folder: str) -> None:
    """Write a .gitignore for the local settings, because `create` refuses untracked files."""
    try:
        with open(os.path.join(folder, ".gitignore"), "x") as file:
            file.write("/.gitignore\n/settings.local.toml\n")
    except FileExistsError:
        pass


def refusals(registry: Registry, layer: Layer) -> Iterator[MngrError]:
    """Yield an error for each default in a layer that its command rejects."""
    commands, templates = layer.values.get("commands"), layer.values.get("create_templates")
    named = [("commands", name, name, options) for name, options in _tables(commands)]
    named += [("create_templates", name, "create", options) for name, options in _tables(templates)]
    for table, name, command, options in named:
        where = f"{layer.origin}: {join_key((table, name))}".removeprefix(": ")
        try:
            _try_options(registry, command, options, where)
        except MngrError as error:
            yield error


def _tables(tree: Json) -> Iterator[tuple[str, dict[str, Json]]]:
    for name, inner in tree.items() if isinstance(tree, dict) else ():
        if isinstance(inner, dict):
            yield name, inner


def _try_options(registry: Registry, command: str, options: dict[str, Json], where: str) -> None:
    try:
        parser = make_parser(registry, command_named(registry, command))
    except MngrError as error:
        raise UsageError(f"{where}: {error.message}", error.hint) from None
    parser.coerce(options, where)


_SECRET = ("token", "key", "password", "passwd", "passphrase", "secret", "secrets", "credentials")


def _masked(args: Namespace, name: str, value: Json) -> Json:
    return value if args.show_secrets else mask(name, value)


def mask(name: str, value: Json) -> Json:
    """Mask a value whose name looks like a secret, also in a list of NAME=VALUE."""
    if isinstance(value, dict):
        return {inner: mask(inner, item) for inner, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(name, item) for item in value]
    if _names_secret(name) and not isinstance(value, bool):
        return "***"
    if isinstance(value, str):
        left, equals, _ = value.partition("=")
        return f"{left}=***" if equals and _names_secret(left) else value
    return value


def _names_secret(name: str) -> bool:
    """Return whether a word of the name means a secret: `API_KEY_2` does, `max_tokens` does not."""
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    return any(word.endswith(_SECRET) for word in words)
