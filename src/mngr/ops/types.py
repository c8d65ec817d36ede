"""Resolve agent types: registered ones, and those that the settings derive from them."""

from __future__ import annotations

import os

from mngr.errors import MissingProgram, Refused, UsageError, suggestion
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mngr.agents.base import AgentType
    from mngr.hosts.base import Host
    from mngr.model.struct import Json
    from mngr.ops.lifecycle.request import CreateRequest
    from mngr.ops.world import World
    from mngr.plugins.registry import Registry
    from mngr.settings.layers import Config


PREFERRED = ("claude", "codex", "opencode")
LAST_RESORT = "mechanic"
"""For runs, if no coding agent is installed: it requires no model, but a test to repair."""


class Derived(Struct):
    """A resolved type: a registered type, the first words of argv, variables."""

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
    """Return the type and its ancestors; the last one is registered."""
    registered, derived = registry.names("agent_type"), config.table("agent_types")
    chain = [name]
    while chain[-1] in derived:
        parent = str(_settings(config, chain[-1]).get("parent_type", "command"))
        if parent == chain[-1] and parent in registered:
            return [*chain, parent]  # settings of the registered type itself
        if parent in chain:
            raise UsageError(f"agent type {name!r} is derived from itself: {' -> '.join(chain)}")
        chain.append(parent)
    if chain[-1] not in registered:
        known = [*registered, *derived]
        otherwise = f"known types: {', '.join(known)}; a command to run goes after `--`"
        raise UsageError(_unknown(chain), suggestion(chain[-1], known, otherwise))
    return chain


def _settings(config: Config, name: str) -> dict[str, Json]:
    table = config.table("agent_types").get(name)
    return table if isinstance(table, dict) else {}


def _unknown(chain: list[str]) -> str:
    origin = f" (parent of {chain[-2]!r})" if len(chain) > 1 else ""
    return f"unknown agent type {chain[-1]!r}{origin}"


def _words(value: Json) -> tuple[str, ...]:
    """Return the words of a list, or of a text split by shell rules."""
    if isinstance(value, str):
        import shlex

        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise UsageError(f"agent_types: {value!r}: {error}") from None
    return tuple(str(word) for word in value) if isinstance(value, (list, tuple)) else ()


# Print the programs that are installed, one per line.
FIND = 'for each; do command -v "$each" > /dev/null && printf "%s\\n" "$each"; done; :'


def installed(host: Host, programs: Iterable[str]) -> set[str]:
    done = host.run(["sh", "-c", FIND, "mngr", *programs], timeout=30)
    return set(done.stdout.decode("utf-8", "replace").splitlines())


# Print what mngr requires and the host lacks: without tar, not even the error could be read. Then
# succeed if the program $1 can be run with the PATH $2, or with the host's own PATH. A path that is
# relative to the work directory, which does not exist yet, counts as found. `command -v` would also
# find keywords of the shell.
LOOK = r"""
for each in git tar tmux; do command -v "$each" > /dev/null || printf '%s\n' "$each"; done
case $1 in /*) [ -f "$1" ] && [ -x "$1" ]; exit ;; */*) exit 0 ;; esac
set -f; IFS=: relative=
for each in ${2:-$PATH}; do
  case $each in /*) ;; *) relative=1; continue ;; esac
  if [ -f "$each/$1" ] && [ -x "$each/$1" ]; then exit 0; fi
done
[ -n "$relative" ]
"""


def require_program(host: Host, kind: AgentType, program: str, path: str) -> None:
    """Raise if the program cannot be run, before anything is created."""
    if _can_run(host, program, path):
        return
    if program == kind.program and kind.install:
        told = f"{program} is not installed on {host.ref.name}"
        raise MissingProgram(told, f"install it with `{kind.install}`")
    where = "" if "/" in program else "the PATH of "
    raise MissingProgram(f"command not found: {program}", f"it is not on {where}{host.ref.name}")


def _can_run(host: Host, program: str, path: str) -> bool:
    if not host.capabilities.shares_files:
        done = host.run(["sh", "-c", LOOK, "mngr", program, path], timeout=30)
        if missing := done.stdout.decode("utf-8", "replace").split():
            told = f"{missing[0]} is not installed on {host.ref.name}"
            raise MissingProgram(told, f"see `mngr doctor --host {host.ref.name}`")
        return done.code != 1
    # The local check starts no process, since it runs in every create.
    if "/" in program and not program.startswith("/"):
        return True
    folders = [""] if "/" in program else (path or os.environ.get("PATH", "")).split(":")
    files = (os.path.join(each, program) for each in folders)
    return any(not os.path.isabs(f) or (os.path.isfile(f) and os.access(f, os.X_OK)) for f in files)


def preflight(world: World, host: Host, name: str, env: Mapping[str, str]) -> None:
    """Raise if the program of this type is missing, or would ask for a login."""
    kind = world.agent_type(name)
    if kind.program:
        require_program(host, kind, kind.program, "")
    login = kind.login(env)
    if login is not None and login.kind == "none":
        raise Refused(f"{kind.program} is not logged in", login.advice)


def with_program(world: World) -> list[tuple[str, AgentType]]:
    """Return the types with one program each, best known first, the fallback last."""
    names = world.registry.names("agent_type")
    ordered = [name for name in PREFERRED if name in names]
    found = []
    others = [name for name in names if name not in (*PREFERRED, LAST_RESORT)]
    for name in [*ordered, *others, *(name for name in names if name == LAST_RESORT)]:
        try:
            kind = world.agent_type(name)
        except Exception as error:  # a plugin's type can raise anything
            world.note(name, error)
            continue
        if kind.program:
            found.append((name, kind))
    return found


def default(world: World, host: Host, *, last_resort: bool = False) -> tuple[Derived, str]:
    """Return the type to use if none was given, and a remark about that choice."""
    kinds = [each for each in with_program(world) if last_resort or each[0] != LAST_RESORT]
    there = installed(host, [kind.program for _, kind in kinds])
    name = next((name for name, kind in kinds if kind.program in there), "")
    if name:
        told = f"no agent type given: using {name}"
        return derive(world.config, world.registry, name), told
    raise UsageError(
        f"nothing to run: {_missing(kinds, host)}",
        f"give a command after `--`{_how(kinds)}",
    )


def _missing(kinds: list[tuple[str, AgentType]], host: Host) -> str:
    names = ", ".join(name for name, _ in kinds if name != LAST_RESORT)
    return f"no coding agent found on {host.ref.name}" + (f" (looked for {names})" if names else "")


def _how(kinds: list[tuple[str, AgentType]]) -> str:
    return next(
        (f", or install a coding agent: {kind.install}" for _, kind in kinds if kind.install), ""
    )


def settled(
    world: World, host: Host, request: CreateRequest
) -> tuple[CreateRequest, tuple[str, ...]]:
    """Return the request with a type, and a remark if mngr chose it; raise on bad options."""
    remarks: tuple[str, ...] = ()
    if not request.type and not request.args:
        kind, remark = default(world, host)
        env = {**kind.env, **request.env}
        request = request.replace(type=kind.type, args=kind.argv, env=env)
        remarks = (remark,)
    if request.max_cost is not None or request.max_tokens is not None:
        from mngr.ops.limits.limits import require_meter
        from mngr.ops.limits.watcher import Limits

        limits = Limits(max_cost=request.max_cost, max_tokens=request.max_tokens)
        require_meter(world, request.type or "command", limits)
    return request, remarks
