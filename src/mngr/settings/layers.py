"""Settings in layers, later ones win: defaults, user, project and local file, variables, -S."""

from __future__ import annotations

import os

from mngr.errors import UnknownSetting, UsageError
from mngr.model.struct import Json, Struct
from mngr.settings.file import parse_value
from mngr.settings.parsed import parsed
from mngr.settings.schema import (
    check,
    check_one,
    defaults,
    join_key,
    kind_of,
    lookup,
    merge,
    nest,
    sift,
    split_key,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PREFIX = "MNGR__"
ALIASES = {"MNGR_HEADLESS": ("headless",), "MNGR_PREFIX": ("prefix",)}
"""Variables that set one setting each; variables such as `MNGR__HEADLESS` override them."""
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_FILE = "settings.toml"
_LOCAL_FILE = "settings.local.toml"


class Layer(Struct):
    """The settings from one origin: a file, a variable, `-S` or `default`."""

    origin: str
    values: dict[str, Json]


class Config:
    """All layers merged; each was checked when it was read, so `get` returns valid values."""

    def __init__(
        self,
        home: str,
        project: str,
        layers: Sequence[Layer],
        problems: Sequence[UsageError] = (),
        unknown: Sequence[UsageError] = (),
    ) -> None:
        self.home = home
        self.project = project  # the project's `.mngr`, or "" outside any
        self.layers = tuple(layers)
        self.problems = tuple(problems)  # only when loaded with strict=False
        self.unknown = tuple(unknown)  # keys and variables that were left out: a warning each
        self.values: dict[str, Json] = {}
        for layer in layers:
            self.values = merge(self.values, layer.values)

    @classmethod
    def load(
        cls,
        home: str,
        cwd: str,
        env: Mapping[str, str],
        settings: Sequence[str] = (),
        *,
        strict: bool = True,
    ) -> Config:
        """Read every layer; without `strict`, add invalid ones to `problems` and skip them."""
        project = find_project(cwd, home, env)
        layers = [Layer(origin="default", values=defaults())]
        problems: list[UsageError] = []
        unknown: list[UsageError] = []
        for name, text in _sources(home, project, env):
            try:
                layers += _file(name, home, unknown) if text is None else [_variable(name, text)]
            except UnknownSetting as problem:
                unknown.append(problem)
            except UsageError as problem:
                problems.append(problem)
        if strict and problems:
            raise problems[0]
        layers += [_setting(text) for text in settings]
        return cls(home, project, layers, problems, unknown)

    @property
    def faults(self) -> tuple[UsageError, ...]:
        """Return all errors in the settings."""
        return (*self.problems, *self.unknown)

    def get(self, key: str, default: Json = None) -> Json:
        """Return the value at a dotted key; `default` if no layer has one."""
        value = lookup(self.values, split_key(key))
        return default if value is None else value

    def table(self, key: str) -> dict[str, Json]:
        """Return the table at a dotted key; empty if there is none."""
        value = self.get(key)
        return value if isinstance(value, dict) else {}

    def seconds(self, key: str) -> float:
        """Return a duration in seconds."""
        from mngr.model.durations import parse_duration

        return parse_duration(str(self.get(key)))

    def count(self, key: str) -> int:
        """Return a whole number above 0."""
        value = self.get(key)
        assert isinstance(value, int), key
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of texts; empty if there is none."""
        value = self.get(key)
        return [str(item) for item in value] if isinstance(value, list) else []

    def origin(self, key: str) -> str:
        """Return the origin of the value at a dotted key; "" if there is none."""
        parts = split_key(key)
        for layer in reversed(self.layers):
            if lookup(layer.values, parts) is not None:
                return layer.origin
        return ""

    def command_defaults(self, command: str) -> dict[str, Json]:
        """Return the defaults of a command's options."""
        return self.table(join_key(("commands", command)))


def load_config(settings: Sequence[str] = (), strict: bool = True) -> Config:
    """Load the settings of this process: home, directory, environment and -S options."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:  # the current directory was removed; much still works
        cwd = "/"
    home = os.environ.get("MNGR_HOST_DIR") or os.path.expanduser("~/.mngr")
    return Config.load(os.path.abspath(home), cwd, os.environ, settings, strict=strict)


def settings_files(home: str, project: str) -> dict[str, str]:
    """Return the path of each scope's file; outside any project only the user's."""
    files = {"user": os.path.join(home, _FILE)}
    if project:
        files["project"] = os.path.join(project, _FILE)
        files["local"] = os.path.join(project, _LOCAL_FILE)
    return files


def scope_file(config: Config, scope: str) -> str:
    """Return the path of a scope's file; a project without settings gets its first one."""
    project = config.project
    if not project and scope != "user":
        project = new_project(os.getcwd(), config.home, os.environ)
    return settings_files(config.home, project)[scope]


def find_project(cwd: str, home: str, env: Mapping[str, str]) -> str:
    """Return the nearest `.mngr` with a settings file in it, or ""."""
    for place in _upwards(cwd, _user_home(env)):
        folder = os.path.join(place, ".mngr")
        named = any(os.path.lexists(os.path.join(folder, name)) for name in (_FILE, _LOCAL_FILE))
        if named and not _same(folder, home) and _trusted(folder, cwd):
            return folder
    return ""


def new_project(cwd: str, home: str, env: Mapping[str, str]) -> str:
    """Return the path for a new `.mngr`: at the git root, else in `cwd`."""
    places = list(_upwards(cwd, _user_home(env)))
    roots = [place for place in places if _is_repository(place)]
    folder = os.path.join((roots or places or [""])[0], ".mngr")
    if not places or _same(folder, home):
        raise UsageError(f"{cwd} is not in a project", "change to one, or use --scope user")
    return folder


def _upwards(cwd: str, user_home: str) -> Iterator[str]:
    """Yield `cwd` and its parents, up to the folder that contains the git repository.

    The user's home is never included: its `.mngr` is mngr's home, even if MNGR_HOST_DIR names
    another.
    """
    place, last = os.path.abspath(cwd), False
    while not _same(place, user_home):
        yield place
        parent = os.path.dirname(place)
        if last or parent == place:
            return
        place, last = parent, _is_repository(place)


def _is_repository(place: str) -> bool:
    return os.path.lexists(os.path.join(place, ".git"))


def _user_home(env: Mapping[str, str]) -> str:
    return env.get("HOME") or os.path.expanduser("~")


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.abspath(one) == os.path.abspath(other)


def _trusted(folder: str, cwd: str) -> bool:
    """Return whether a settings folder may be used, because settings can contain commands.

    Another user could put such a folder into a parent directory such as /tmp.
    """
    try:
        return os.stat(folder).st_uid in (os.geteuid(), 0, os.stat(cwd).st_uid)
    except OSError:
        return False


def _sources(home: str, project: str, env: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
    """Yield (path, None) for files, then (name, value) for variables."""
    for path in settings_files(home, project).values():
        yield path, None
    for name in ALIASES:
        if name in env:
            yield name, env[name]
    for name in sorted(env):
        if name.startswith(_PREFIX):
            yield name, env[name]


def _file(path: str, home: str, unknown: list[UsageError]) -> list[Layer]:
    values = parsed(path, home)
    if values is None:
        return []
    values, left_out = sift(values, path)
    unknown += left_out
    check(values, path)
    return [Layer(origin=path, values=values)]


def _variable(name: str, text: str) -> Layer:
    parts = ALIASES.get(name) or tuple(name.removeprefix(_PREFIX).lower().split("__"))
    if not all(parts):
        raise UnknownSetting(f"bad variable name {name}", "write it like MNGR__TRASH__KEEP")
    return _single(name, parts, text)


def _setting(text: str) -> Layer:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"-S {text} has no value", "write it like -S trash.keep=30d")
    return _single("-S", split_key(key.strip()), value)


def _single(origin: str, parts: tuple[str, ...], text: str) -> Layer:
    value = read_value(parts, text)
    check_one(parts, value, origin)
    return Layer(origin=origin, values=nest(parts, value))


def read_value(parts: tuple[str, ...], text: str) -> Json:
    """Return the value as TOML or text; a setting of kind text is never parsed."""
    value = parse_value(text)
    kind = kind_of(parts)
    if kind == "flag" and text.lower() in _YES + _NO:
        return text.lower() in _YES
    as_text = kind == "text" or (kind == "words" and not isinstance(value, list))
    return text if as_text and not isinstance(value, str) else value
