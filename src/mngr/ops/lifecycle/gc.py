"""Remove leftovers that mngr recorded creating: make a plan, then carry out exactly that plan."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from mngr.errors import MngrError, Refused
from mngr.hosts import processes
from mngr.hosts.base import Host
from mngr.model.records import trash_dir
from mngr.model.state import ALIVE
from mngr.ops.lifecycle import destroy, gc_git, trash
from mngr.ops.lifecycle.leftover import Leftover, remover
from mngr.ops.lifecycle.trash import Trashed
from mngr.ops.look.listing import Agent, agents
from mngr.ops.world import World

__all__ = ["Leftover", "plan"]


def plan(world: World, provider: str = "") -> list[Leftover]:
    """Return what can be removed; skip hosts that did not answer."""
    hosts = world.hosts_of([provider]) if provider else world.hosts()
    everything = agents(world, hosts=hosts)
    found: list[Leftover] = []
    for host in hosts:
        if host.ref.id in world.silent:
            continue
        mine = [agent for agent in everything if agent.host is host]
        try:
            found += _on(world, host, mine)
        except MngrError as error:  # it stopped answering, or its disk cannot be read
            world.note(host.ref.name, error)
    return found


def _on(world: World, host: Host, mine: list[Agent]) -> list[Leftover]:
    entries = {each.note.id: each for each in trash.on(host)}
    return [
        *_interrupted(world, mine, entries),
        *_old_trash(world, host, mine, list(entries.values())),
        *_void_claims(host, mine),
        *_temporary_files(host),
        *gc_git.leftovers(world, host),
    ]


def _interrupted(
    world: World, mine: list[Agent], entries: Mapping[str, Trashed]
) -> Iterator[Leftover]:
    for agent in mine:
        why = _why_interrupted(agent, entries.get(agent.id))
        if why:
            yield Leftover(
                kind="agent", what=agent.name, why=f"{why}; moves to the trash",
                remove=lambda agent=agent: _finish(world, agent),  # type: ignore[misc]
            )  # fmt: skip


def _why_interrupted(agent: Agent, entry: Trashed | None) -> str:
    record = agent.evidence.record
    if record is None:
        return ""
    if record.removal is not None:
        worker, since = record.removal.worker, record.removal.time
        alive = processes.is_alive(worker, since=since, now=agent.now)
        return "" if alive else "its destruction was interrupted"
    if entry and "a" in entry.parts and not agent.evidence.started and agent.state not in ALIVE:
        return "a second record of an agent in the trash"
    return "its creation was interrupted" if agent.unfinished else ""


def _finish(world: World, agent: Agent) -> None:
    removal = agent.record.removal
    destroy.destroy(world, agent, drop_branch=removal is not None and removal.drop_branch)


def _old_trash(
    world: World, host: Host, mine: Sequence[Agent], entries: Sequence[Trashed]
) -> Iterator[Leftover]:
    keep, now = world.config.seconds("trash.keep"), time.time()
    removing = {a.id for a in mine if a.evidence.record and a.evidence.record.removal}
    for each in entries:
        why = _why_old(each, now, keep)
        if not why or each.note.id in removing:
            continue
        name = f"{each.note.name} " if each.note.name else ""
        yield Leftover(
            kind="trash",
            what=f"{name}({trash_dir(host.home, each.note.id)})",
            why=why,
            remove=lambda each=each: trash.purge(world, each),  # type: ignore[misc]
        )


def _why_old(each: Trashed, now: float, keep: float) -> str:
    """Return why an entry can be removed; "" if it is recent or its restore is unfinished."""
    if "p" in each.parts:
        return "its removal was interrupted"
    if each.living:
        return "" if set(each.parts) & set("aw") or not each.note.name else "its agent was restored"
    if now - each.time < keep or (each.back and "w" not in each.parts):
        return ""
    return f"destroyed {(now - each.time) / 86400:.1f} days ago"


CLAIMS = r"""
cd "$1/names" 2>/dev/null || exit 0
find . -maxdepth 1 -name '*.json' -mmin +60
"""


def _void_claims(host: Host, mine: list[Agent]) -> Iterator[Leftover]:
    if any(agent.evidence.record is None for agent in mine):
        return  # one of the names may belong to the agent whose record cannot be read
    names = {agent.name for agent in mine}
    done = host.run(["sh", "-c", CLAIMS, "mngr", host.home], timeout=60)
    for file in sorted(done.stdout.decode().split()):
        file = file.removeprefix("./")
        if file.rsplit(".", 2)[0] not in names:
            yield Leftover(
                kind="name", what=file, why="no agent has this name",
                remove=lambda file=file: _remove_claim(host, file),  # type: ignore[misc]
            )  # fmt: skip


def _remove_claim(host: Host, file: str) -> None:
    name = file.rsplit(".", 2)[0]
    if any(each.record and each.record.name == name for each in host.read().agents):
        raise Refused(f"an agent has the name {name!r} again")
    remover(host, "rm", "-f", os.path.join(host.home, "names", file))()


TEMPORARY = r"""
cd "$1" 2>/dev/null || exit 0
find . -maxdepth 1 \( -name '.put.??????' -o -name '.tmux.json.*' -o -name '.*.tmp' \) -mmin +60
find cache -maxdepth 2 -name '.*.tmp' -mmin +60 2>/dev/null
find agents names trash -maxdepth 2 -name '.?*' ! -name '.purge-agent-*' -mmin +60 2>/dev/null
find agents -mindepth 1 -maxdepth 1 -type d -empty -mmin +60 2>/dev/null
find trash -mindepth 1 -maxdepth 1 -type d -empty -mmin +60 2>/dev/null
"""


def _temporary_files(host: Host) -> Iterator[Leftover]:
    done = host.run(["sh", "-c", TEMPORARY, "mngr", host.home], timeout=60)
    for file in sorted(set(os.fsdecode(done.stdout).splitlines())):
        path = os.path.join(host.home, file.removeprefix("./"))
        # A folder that was empty may have been filled meanwhile; then rmdir fails.
        words = ["rm", "-rf"] if os.path.basename(path).startswith(".") else ["rmdir"]
        yield Leftover(
            kind="file", what=path, why="left by an interrupted write",
            remove=remover(host, *words, path),
        )  # fmt: skip
