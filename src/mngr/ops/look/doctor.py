"""Check what mngr requires, and report how to fix what is wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from mngr.errors import MngrError
from mngr.hosts import tmux
from mngr.ops import types
from mngr.ops.lifecycle import gc
from mngr.ops.look import doctor_host, logins
from mngr.ops.look.doctor_host import Finding, programs
from mngr.ops.look.listing import agents
from mngr.ops.world import World


def examine(world: World) -> list[Finding]:
    return [
        *doctor_host.examine(world.host()),
        *_permissions(world.home),
        *_plugins(world),
        *_programs(world),
        *_agents(world),
        *_sessions(world),
        *_leftovers(world),
    ]


def _permissions(home: str) -> Iterator[Finding]:
    if os.path.isdir(home) and os.stat(home).st_mode & 0o022:
        yield Finding(
            check="permissions", status="warning", detail=f"other users can write to {home}",
            remedy=f"chmod go-w {home}", fix=lambda: os.chmod(home, 0o700),
        )  # fmt: skip


def _plugins(world: World) -> Iterator[Finding]:
    for problem in world.registry.problems:
        yield Finding(
            check="plugins", status="warning", detail=problem,
            remedy="update it, or add it to plugins.disabled",
        )  # fmt: skip


def _programs(world: World) -> Iterator[Finding]:
    """Report which coding agents are installed; a missing one is not a problem."""
    installed = {}
    for name, found, finding in programs(world, world.host()):
        installed[name] = found
        yield finding
        login = world.agent_type(name).login(os.environ) if found else None
        if login is not None:
            status, detail, remedy = logins.described(name, login, time.time())
            yield Finding(check=f"login {name}", status=status, detail=detail, remedy=remedy)
    own = installed.pop(types.LAST_RESORT, None) is not None
    if (installed or own) and not any(installed.values()):
        other = ", or use `mngr create NAME mechanic`, which requires no model" if own else ""
        yield Finding(
            check="agents", status="warning", detail="no coding agent is installed",
            remedy=f"install one of the above{other}; any command works after `--`",
        )  # fmt: skip


def _agents(world: World) -> Iterator[Finding]:
    everything = agents(world)
    bad = [agent for agent in everything if agent.evidence.record is None]
    for agent in bad:
        folder = os.path.join(agent.host.home, "agents", agent.id)
        yield Finding(
            check="records", status="problem",
            detail=f"{agent.id}: unreadable record: {agent.evidence.problem}",
            remedy=f"repair or move away {folder}",
        )  # fmt: skip
    if not bad:
        many = "1 agent" if len(everything) == 1 else f"{len(everything)} agents"
        yield Finding(check="records", status="ok", detail=many)
    for problem in world.problems:
        yield Finding(check="hosts", status="warning", detail=f"{problem.who}: {problem.problem}")


def _sessions(world: World) -> Iterator[Finding]:
    """Report sessions on mngr's tmux server without a record; mngr itself leaves none."""
    known = {agent.id for agent in agents(world)}
    for host in world.hosts():
        try:
            done = host.run(tmux.list_panes(host.socket), timeout=20)
        except MngrError:
            continue  # reported as one of the hosts that do not answer
        panes = tmux.parse_panes(done.stdout.decode("utf-8", "replace"))
        for session in sorted(set(panes) - known):
            argv = tmux.kill_session(host.socket, session)
            yield Finding(
                check="sessions", status="warning", detail=f"tmux session {session} has no agent",
                remedy="mngr doctor --fix ends it",
                fix=lambda host=host, argv=argv: host.run(argv, timeout=20) and None,  # type: ignore[misc]
            )  # fmt: skip


def _leftovers(world: World) -> Iterator[Finding]:
    for leftover in gc.plan(world):
        yield Finding(
            check="leftovers", status="warning", detail=str(leftover),
            remedy="mngr gc removes it", fix=leftover.remove,
        )  # fmt: skip
