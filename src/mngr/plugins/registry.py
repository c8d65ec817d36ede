"""The registry: agent types, providers, commands and event handlers, by name.

It holds dotted paths and imports them when they are used. A plugin is a module with
`register(registry)`; the built-in ones are registered in the same way.
"""

from __future__ import annotations

import sys

from mngr.errors import MngrError, Taken, UsageError, suggestion
from mngr.model.struct import Json, Struct
from mngr.plugins.entry_points import EntryPoint, installed, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from mngr.settings.layers import Config

BUILTIN = "mngr.plugins.builtin"

EVENTS = (
    "agent_created",
    "agent_started",
    "agent_stopped",
    "agent_destroyed",
    "host_created",
    "host_destroyed",
    "message_delivered",
)


class Command(Struct):
    """A command, its module, and its help for the overview."""

    name: str
    module: str
    help: str
    aliases: tuple[str, ...] = ()
    group: str = "Plugins"

    @property
    def words(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


class Plugin(Struct):
    """The result of loading an entry point, or a module that the settings name."""

    point: EntryPoint
    enabled: bool = True
    registers: dict[str, tuple[str, ...]] = {}
    """Names by kind; empty for a disabled plugin, which is not imported."""
    problem: str = ""


class Registry:
    """Names to dotted paths. `problems` collects one line per thing that a plugin got wrong."""

    def __init__(self) -> None:
        self.plugins: list[Plugin] = []
        self.commands: dict[str, Command] = {}
        self.problems: list[str] = []
        self._targets: dict[str, dict[str, str]] = {"agent_type": {}, "provider": {}}
        self.noted: set[str] = set()
        self._handlers: list[tuple[str, str]] = []
        self._collectors: list[str] = []
        self._words: dict[str, str] = {}

    # called by plugins

    def agent_type(self, name: str, target: str) -> None:
        """Register an agent type; `target` is `module:object`, as everywhere here."""
        self._claim("agent_type", name, target)

    def provider(self, name: str, target: str, *, noted: bool = False) -> None:
        """Register a provider.

        With `noted`, its hosts are in the settings or recorded in $MNGR_HOST_DIR/hosts/<name>, and
        without either it is not loaded.
        """
        self._claim("provider", name, target)
        if noted:
            self.noted.add(name)

    def command(
        self, name: str, module: str, help: str, aliases: Iterable[str] = (), group: str = "Plugins"
    ) -> None:
        """Register a command; the module has `configure(parser)` and `run(args) -> int`."""
        words = tuple(aliases)
        self._add_command(Command(name=name, module=module, help=help, aliases=words, group=group))

    def on(self, event: str, target: str) -> None:
        """Call `target(payload)` after each such event, in the process that caused it."""
        if event not in EVENTS:
            raise UsageError(f"unknown event {event!r}", suggestion(event, EVENTS))
        self._handlers.append((event, target))

    def leftovers(self, target: str) -> None:
        """Let `mngr gc` also remove each mngr.api.Leftover that `target(config)` yields."""
        self._collectors.append(target)

    # called by mngr

    def collected(self, config: Config) -> list[object]:
        found: list[object] = []
        for target in self._collectors:
            with _Blamed(self.problems, f"leftovers {target!r}"):
                found += _function(target, "leftovers")(config)
        return found

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind (`agent_type`, `provider`, `command`), in order."""
        if kind == "command":
            return list(self.commands)
        return list(self._targets[kind])

    def resolve(self, word: str) -> Command:
        """Return the command with this name or alias."""
        if word not in self._words:
            hint = suggestion(word, self._words, "see `mngr help`")
            raise UsageError(f"unknown command {word!r}", hint)
        return self.commands[self._words[word]]

    def load_command(self, name: str) -> ModuleType:
        command = self.resolve(name)
        module = _module(command.module, f"command {command.name!r}")
        for wanted in ("configure", "run"):
            if not hasattr(module, wanted):
                raise MngrError(f"command {name!r}: {command.module!r} has no {wanted!r}")
        return module

    def load(self, kind: str, name: str) -> object:
        """Return the object registered under a name of kind `agent_type` or `provider`."""
        targets = self._targets[kind]
        what = f"{kind.replace('_', ' ')} {name!r}"
        if name not in targets:
            raise UsageError(f"unknown {what}", suggestion(name, targets))
        return _object(targets[name], what)

    def emit(self, event: str, payload: dict[str, Json]) -> None:
        """Call the handlers of an event; their errors are only reported, as it has happened."""
        for name, target in self._handlers:
            if name == event:
                with _Blamed(self.problems, f"handler {target!r} of {event}"):
                    _function(target, f"handler of {event}")(payload)

    def add_plugin(self, point: EntryPoint) -> None:
        """Add everything that a plugin registers, or nothing if it raises."""
        part = Registry()
        problems: list[str] = []
        who = f"plugin {point.name!r}"
        blamed = _Blamed(problems, who, f"to disable it: `mngr plugin disable {point.name}`")
        with blamed:
            named = ":" in point.target
            _function(point.target if named else f"{point.target}:register", who)(part)
            self._merge(part, blamed)
        self.problems += problems
        plugin = Plugin(point=point, registers=part.registered(), problem="; ".join(problems))
        self.plugins.append(plugin)

    def registered(self) -> dict[str, tuple[str, ...]]:
        """Return all registered names, by kind."""
        return {
            "agent_types": tuple(self._targets["agent_type"]),
            "providers": tuple(self._targets["provider"]),
            "commands": tuple(self.commands),
            "events": tuple(dict.fromkeys(event for event, _ in self._handlers)),
        }

    def leave_out(self, names: Iterable[str]) -> None:
        """Remove the commands, agent types and providers with these names."""
        for name in names:
            for targets in self._targets.values():
                targets.pop(name, None)
            command = self.commands.pop(name, None)
            for word in command.words if command else ():
                del self._words[word]

    # implementation

    def _merge(self, part: Registry, blamed: _Blamed) -> None:
        for kind, targets in part._targets.items():
            for name, target in targets.items():
                with blamed:
                    self._claim(kind, name, target)
        for command in part.commands.values():
            with blamed:
                self._add_command(command)
        self.noted |= part.noted
        self._handlers += part._handlers
        self._collectors += part._collectors

    def _claim(self, kind: str, name: str, target: str) -> None:
        if name in self._targets[kind]:
            raise Taken(f"the {kind.replace('_', ' ')} {name!r} already exists")
        self._targets[kind][name] = target

    def _add_command(self, command: Command) -> None:
        for word in command.words:
            if word in self._words:
                raise Taken(f"the command {word!r} already exists")
        self.commands[command.name] = command
        self._words.update(dict.fromkeys(command.words, command.name))


def load_registry(config: Config | None) -> Registry:
    """Return the built-ins and all enabled plugins; without settings, only the built-ins."""
    registry = Registry()
    registry.add_plugin(EntryPoint(name=BUILTIN, target=BUILTIN))
    if config is None:
        return registry
    disabled = set(config.texts("plugins.disabled"))
    others = set(disabled)
    for point in find_plugins(config):
        names = {point.name, point.module}
        others -= names
        if names & disabled:
            registry.plugins.append(Plugin(point=point, enabled=False))
        else:
            registry.add_plugin(point)
    _add_templates(registry, config)
    registry.leave_out(others)
    return registry


def own_registry() -> Registry:
    """Return a registry with the built-ins and the plugins that are part of mngr."""
    registry = load_registry(None)
    for folder in sys.path:
        points = [point for point in scan(folder or ".") if point.distribution == "mngr"]
        for point in points:
            registry.add_plugin(point)
        if points:  # if a distribution is installed twice, the first one counts
            break
    return registry


def _add_templates(registry: Registry, config: Config) -> None:
    """Register a provider for every table of templates in the settings."""
    for name, table in config.table("providers").items():
        if isinstance(table, dict) and "exec" in table:
            with _Blamed(registry.problems, f"providers.{name}"):
                registry.provider(name, f"mngr.hosts.engines.command:{name}", noted=True)


def find_plugins(config: Config) -> list[EntryPoint]:
    """Return the installed plugins, then those in the settings, without importing them."""
    found = installed(config.home, sys.path)
    there = {point.module for point in found}
    modules = dict.fromkeys(config.texts("plugins.modules"))
    return found + [EntryPoint(name=name, target=name) for name in modules if name not in there]


def _function(target: str, what: str) -> Callable[[object], Iterable[object]]:
    found = _object(target, what)
    if not callable(found):
        raise MngrError(f"{what}: {target!r} is not callable")
    return found


def _module(name: str, what: str) -> ModuleType:
    try:
        __import__(name)
    except MngrError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
            raise MngrError(f"{what}: there is no module {name!r}") from None
        # A plugin can raise anything while it is imported; the cause keeps the traceback for -v.
        raise MngrError(f"{what} cannot be loaded: {type(error).__name__}: {error}") from error
    return sys.modules[name]


def _object(target: str, what: str) -> object:
    module, _, name = target.partition(":")
    found: object = getattr(_module(module, what), name, None)
    if found is None:
        raise MngrError(f"{what}: {module!r} has no {name!r}")
    return found


class _Blamed:
    """Turns any error raised inside into one line that names `who`."""

    def __init__(self, problems: list[str], who: str, remedy: str = "") -> None:
        self.problems = problems
        self.who = who
        self.remedy = remedy

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, (Exception, SystemExit)):
            return False
        text = str(error) if isinstance(error, MngrError) else f"{type(error).__name__}: {error}"
        line = " ".join(text.split())
        line = line if line.startswith(self.who) else f"{self.who}: {line}"
        self.problems.append(f"{line}; {self.remedy}" if self.remedy else line)
        return True
