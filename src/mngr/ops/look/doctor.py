"""Check what mngr requires, and report how to fix what is wrong."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator

from mngr.errors import MngrError
from mngr.hosts import spawn, tmux
from mngr.hosts.base import Host
from mngr.model.struct import Json, Struct
from mngr.ops import types
from mngr.ops.lifecycle import gc
from mngr.ops.look import install, logins
from mngr.ops.look.listing import agents
from mngr.ops.world import World


class Finding(Struct):
    """One check: ok, absent, warning or problem."""

    check: str
    status: str
    detail: str
    remedy: str = ""
    fix: Callable[[], None] | None = None

    def to_json(self) -> dict[str, Json]:
        return {
            "check": self.check,
            "status": self.status,
            "detail": self.detail,
            "remedy": self.remedy,
            "fixable": self.fix is not None,
        }


def examine(world: World) -> list[Finding]:
    return [
        _program("git", ["git", "--version"], (2, 30), needed=True),
        _program("tmux", ["tmux", "-V"], tmux.MINIMUM, needed=True),
        _program("rsync", ["rsync", "--version"], (0, 0), needed=False),
        _program("asciinema", ["asciinema", "--version"], (0, 0), needed=False),
        *_home(world),
        *_plugins(world),
        *_programs(world),
        *_agents(world),
        *_sessions(world),
        *_leftovers(world),
        *_lingering(),
    ]


def _program(name: str, argv: list[str], minimum: tuple[int, int], *, needed: bool) -> Finding:
    bad = "problem" if needed else "warning"
    wanted = f"{name} {minimum[0]}.{minimum[1]} or newer" if minimum > (0, 0) else name
    try:
        said = spawn.run(argv, timeout=20).stdout.decode("utf-8", "replace").split("\n")[0]
    except MngrError as error:
        return Finding(
            check=name, status=bad, detail=error.message,
            remedy=install.line(name) or f"install {wanted}", fix=install.installing(name),
        )  # fmt: skip
    found = re.search(r"(\d+)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < minimum:
        return Finding(check=name, status=bad, detail=said, remedy=f"install {wanted}")
    return Finding(check=name, status="ok", detail=said)


def _home(world: World) -> Iterator[Finding]:
    home = world.home
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        probe = os.path.join(home, f".probe.{os.getpid()}")
        with open(probe, "wb") as file:
            file.write(b"x" * 4096)
        os.unlink(probe)
    except OSError as error:
        yield Finding(
            check="home", status="problem", detail=f"{home}: {error.strerror}",
            remedy="make it writable, free some space, or set MNGR_HOST_DIR",
        )  # fmt: skip
        return
    space = os.statvfs(home)
    free = space.f_bavail * space.f_frsize
    low = free < 1 << 30
    yield Finding(
        check="home",
        status="warning" if low else "ok",
        detail=f"{home}, {free / (1 << 30):.1f} GiB free",
        remedy="free some space" if low else "",
    )
    if os.stat(home).st_mode & 0o022:
        yield Finding(
            check="permissions", status="warning", detail=f"others can write to {home}",
            remedy=f"chmod go-w {home}", fix=lambda: os.chmod(home, 0o700),
        )  # fmt: skip


def _plugins(world: World) -> Iterator[Finding]:
    for problem in world.registry.problems:
        yield Finding(
            check="plugins", status="warning", detail=problem,
            remedy="update it, or add it to plugins.disabled",
        )  # fmt: skip


def programs(world: World, host: Host) -> Iterator[tuple[str, bool, Finding]]:
    """Yield each type, whether its program is installed, and that as a finding."""
    kinds = types.with_program(world)
    there = types.installed(host, [kind.program for _, kind in kinds]) if kinds else ()
    for name, kind in kinds:
        found = kind.program in there
        yield name, found, Finding(
            check=f"agent {name}", status="ok" if found else "absent",
            detail=f"{kind.program} is {'' if found else 'not '}installed",
            remedy="" if found else kind.install,
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
        yield Finding(check="records", status="ok", detail=f"{len(everything)} agents")
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


def _lingering() -> Iterator[Finding]:
    """Report whether systemd ends all processes of a user at logout, including tmux."""
    user = os.environ.get("USER", "")
    if not user or os.getuid() == 0 or not os.environ.get("SSH_CONNECTION"):
        return
    if not os.path.isdir("/run/systemd/system") or os.path.exists(
        f"/var/lib/systemd/linger/{user}"
    ):
        return
    yield Finding(
        check="logout", status="warning",
        detail="agents may end when you log out: lingering is off",
        remedy=f"loginctl enable-linger {user}",
    )  # fmt: skip
