"""Remove leftovers mngr recorded creating: first a plan, then exactly that plan."""

from __future__ import annotations

import os
import time

from mngr.hosts import processes
from mngr.ops import destroy
from mngr.ops.listing import agents
from mngr.records import trash_dir
from mngr.state import State
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mngr.hosts.base import Host
    from mngr.ops.listing import Agent
    from mngr.ops.world import World

STALE = 3600
"""Seconds after which a temporary file cannot belong to a running write."""


class Leftover(Struct):
    """One thing to remove, why, and how."""

    kind: str
    what: str
    why: str
    remove: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.what}: {self.why}"


def plan(world: World, provider: str = "") -> list[Leftover]:
    """Nothing of a host that did not answer is touched."""
    hosts = [host for host in world.hosts() if provider in ("", host.ref.provider)]
    everything = [agent for agent in agents(world) if agent.host in hosts]
    silent = {a.host.ref.id for a in everything if a.state is State.UNREACHABLE}
    found: list[Leftover] = []
    for host in hosts:
        if host.ref.id not in silent:
            mine = [agent for agent in everything if agent.host is host]
            found += [*_interrupted(world, mine), *_old_trash(world, host, mine)]
            found += [*_void_claims(host, mine), *_temporary_files(host)]
    return found


def _interrupted(world: World, mine: list[Agent]) -> Iterator[Leftover]:
    for agent in mine:
        record = agent.evidence.record
        if record is None:
            continue
        remove = _destroyer(world, agent)
        if record.removal is not None:
            worker = record.removal.worker
            if not processes.is_alive(worker, since=record.removal.time, now=agent.now):
                yield Leftover(
                    kind="agent", what=agent.name, remove=remove,
                    why="its destroy was interrupted; into the trash",
                )  # fmt: skip
        elif agent.state is State.LOST and agent.verdict.reason == "create interrupted":
            yield Leftover(
                kind="agent", what=agent.name, why="its create was interrupted; into the trash",
                remove=remove,
            )  # fmt: skip


def _destroyer(world: World, agent: Agent) -> Callable[[], None]:
    removal = agent.record.removal
    drop = removal is not None and removal.drop_branch
    return lambda: destroy.destroy(world, agent, drop_branch=drop)


def _old_trash(world: World, host: Host, mine: list[Agent]) -> Iterator[Leftover]:
    keep = world.config.seconds("trash.keep")
    living = {agent.id for agent in mine}
    for each in destroy.trashed(world):
        note = each.note
        if each.host is not host or note.id in living or time.time() - note.time < keep:
            continue
        # A work dir back in its place without its record: a restore was interrupted. One that
        # mngr did not make was never away.
        made = note.work_dir.startswith(os.path.join(host.home, "worktrees", ""))
        if made and host.run(["test", "-e", note.work_dir], timeout=30).code == 0:
            continue
        days = (time.time() - note.time) / 86400
        yield Leftover(
            kind="trash",
            what=f"{note.name} ({trash_dir(host.home, note.id)})",
            why=f"destroyed {days:.1f} days ago",
            remove=lambda each=each: destroy.purge(world, each),  # type: ignore[misc]
        )


CLAIMS = r"""
cd "$1/names" 2>/dev/null || exit 0
find . -maxdepth 1 -name '*.json' -mmin +60
"""


def _void_claims(host: Host, mine: list[Agent]) -> Iterator[Leftover]:
    names = {agent.name for agent in mine}
    done = host.run(["sh", "-c", CLAIMS, "mngr", host.home], timeout=60)
    for file in sorted(done.stdout.decode().split()):
        file = file.removeprefix("./")
        if file.rsplit(".", 2)[0] not in names:
            path = os.path.join(host.home, "names", file)
            yield Leftover(
                kind="name", what=file, why="no agent has this name", remove=_remover(host, path)
            )


TEMPORARY = r"""
cd "$1" 2>/dev/null || exit 0
find . -maxdepth 1 \( -name '.put.??????' -o -name '.tmux.json.*' \) -mmin +60
find agents names trash -maxdepth 2 -name '.?*' -mmin +60 2>/dev/null
find agents -mindepth 1 -maxdepth 1 -type d -empty -mmin +60 2>/dev/null
find trash -mindepth 1 -maxdepth 1 -type d -empty -mmin +60 2>/dev/null
"""


def _temporary_files(host: Host) -> Iterator[Leftover]:
    done = host.run(["sh", "-c", TEMPORARY, "mngr", host.home], timeout=60)
    for file in sorted(set(os.fsdecode(done.stdout).splitlines())):
        path = os.path.join(host.home, file.removeprefix("./"))
        why = "left by an interrupted write"
        yield Leftover(kind="file", what=path, why=why, remove=_remover(host, path))


def _remover(host: Host, path: str) -> Callable[[], None]:
    def remove() -> None:
        host.run(["rm", "-rf", path], timeout=60)

    return remove
