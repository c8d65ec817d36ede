"""Agent types as a person names them: registered ones, and those the settings derive from them."""

from __future__ import annotations

from mngr.errors import UsageError, nearest
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.config import Config
    from mngr.plugins import Registry
    from mngr.struct import Json


class Derived(Struct):
    """What a type's name stands for: a registered type, the first words of argv, variables."""

    type: str
    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}


def derive(config: Config, registry: Registry, name: str) -> Derived:
    """Follow `agent_types.NAME.parent_type` down to a registered type."""
    chain = _chain(config, registry, name)
    command: tuple[str, ...] = ()
    cli_args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    for table in reversed(chain[:-1]):  # from the oldest ancestor to the type itself
        settings = _settings(config, table)
        command = _words(settings.get("command")) or command
        cli_args += _words(settings.get("cli_args"))
        variables = settings.get("env")
        if isinstance(variables, dict):
            env |= {key: str(value) for key, value in variables.items()}
    return Derived(type=chain[-1], argv=command + cli_args, env=env)


def _chain(config: Config, registry: Registry, name: str) -> list[str]:
    """The type and its ancestors; the last one is registered."""
    registered, derived = registry.names("agent_type"), config.table("agent_types")
    chain = [name]
    while chain[-1] in derived:
        parent = str(_settings(config, chain[-1]).get("parent_type", "command"))
        if parent == chain[-1] and parent in registered:
            return [*chain, parent]  # settings of a registered type itself
        if parent in chain:
            raise UsageError(f"agent type {name!r} is derived from itself: {' -> '.join(chain)}")
        chain.append(parent)
    if chain[-1] not in registered:
        raise UsageError(_unknown(chain), _hint(chain[-1], [*registered, *derived]))
    return chain


def _settings(config: Config, name: str) -> dict[str, Json]:
    table = config.table("agent_types").get(name)
    return table if isinstance(table, dict) else {}


def _unknown(chain: list[str]) -> str:
    origin = f" (parent of {chain[-2]!r})" if len(chain) > 1 else ""
    return f"unknown agent type {chain[-1]!r}{origin}"


def _hint(word: str, known: list[str]) -> str:
    near = nearest(word, known)
    if near:
        return f"did you mean {near!r}?"
    return f"known types: {', '.join(known)}; a command to run goes after `--`"


def _words(value: Json) -> tuple[str, ...]:
    """A list, or a text that is split as a shell would."""
    if isinstance(value, str):
        import shlex

        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise UsageError(f"agent_types: {value!r}: {error}") from None
    return tuple(str(word) for word in value) if isinstance(value, (list, tuple)) else ()
