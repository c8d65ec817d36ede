"""Destroy and restore: everything removed is one moved directory, so everything comes back.

destroy: intent recorded -> processes ended -> HEAD detached -> work dir moved -> worktree
repaired -> branch dropped if asked or empty -> state dir moved. Each step looks whether it is
done already, so repeating the command after a crash finishes it. restore is the reverse.
"""

from __future__ import annotations

import os
import time

from mngr import events, git
from mngr.errors import BadRecord, MngrError, NotFound, Refused, Stale, nearest
from mngr.git import Repo
from mngr.hosts.processes import this_process
from mngr.locks import Lock
from mngr.ops import mirror, names, sandboxing, versioned, workdir
from mngr.ops.change import change
from mngr.ops.ending import end_processes
from mngr.ops.listing import Agent, agents, refreshed
from mngr.ops.steps import step
from mngr.records import (
    AgentRecord,
    Removal,
    StopIntent,
    TrashNote,
    agent_dir,
    decode,
    encode,
    trash_dir,
)
from mngr.state import ALIVE
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mngr.hosts.base import Host
    from mngr.ops.workdir import Risk
    from mngr.ops.world import World


class Trashed(Struct):
    """One destroyed agent that can come back."""

    host: Host
    note: TrashNote


def risk(agent: Agent, *, drop_branch: bool = False) -> Risk:
    """What would be lost if the trash were emptied too."""
    record = agent.record
    if not record.made_work_dir:
        return workdir.Risk()
    losing = record.branch if drop_branch and record.made_branch else ""
    return workdir.at_risk(
        agent.host,
        record.work_dir,
        record.transfer,
        losing_branch=losing,
        source=record.source,
        base=record.base_commit,
    )


def destroy(world: World, agent: Agent, *, drop_branch: bool = False) -> None:
    """Move the agent to the trash; asking whether that is wanted is the caller's business."""
    condemn(world, [agent], drop_branch=drop_branch)
    bury(world, agent)


def condemn(world: World, chosen: Sequence[Agent], *, drop_branch: bool = False) -> None:
    """The first half, for all at once: record the intent, end every process."""
    for host in {agent.host.ref.id: agent.host for agent in chosen}.values():
        mine = [agent for agent in chosen if agent.host.ref == host.ref]
        # What an earlier destroy noted about an agent that came back is history.
        old = [trash_dir(host.home, a.id) for a in mine if a.record.removal is None]
        _script(host, 'for each; do rm -f "$each/trash.json"; done', *old)
        for agent in mine:
            change(host, agent.id, _with_removal(agent, drop_branch), agent.evidence)
        step("removal_recorded")
        end_processes(world, host, [agent.id for agent in mine])
        step("processes_ended")


def _with_removal(agent: Agent, drop_branch: bool) -> Callable[[AgentRecord], AgentRecord]:
    removal = Removal(time=time.time(), worker=this_process(), drop_branch=drop_branch)

    def edit(record: AgentRecord) -> AgentRecord:
        # Ended by us, not by itself: restored, it is STOPPED rather than FAILED.
        intent = StopIntent(launch=record.launch, time=removal.time)
        stop = intent if agent.state in ALIVE else record.stop
        return record.replace(removal=removal, stop=stop)

    return edit


def bury(world: World, agent: Agent) -> None:
    """The second half: everything moves to the trash."""
    record = refreshed(world, agent).record
    _move_to_trash(world, agent.host, record)
    world.emit("agent_destroyed", agent.host, record)


def discard(world: World, host: Host, record: AgentRecord) -> None:
    """A create that failed: what it made so far goes to the trash."""
    end_processes(world, host, [record.id])
    _move_to_trash(world, host, record)


def _move_to_trash(world: World, host: Host, record: AgentRecord) -> None:
    folder = trash_dir(host.home, record.id)
    note = _note(host, record)
    host.put({os.path.join(folder, "trash.json"): (encode(note), 0o600)})
    step("noted")
    if record.made_work_dir:
        _move_work_dir(world, host, record, note)
    event = events.line(events.event("agent_destroyed", agent_id=record.id, agent_name=record.name))
    script = 'printf "%s\\n" "$3" >> "$1/events.jsonl"; [ -e "$2" ] || mv "$1" "$2"'
    state_dir = agent_dir(host.home, record.id)
    _script(host, script, state_dir, os.path.join(folder, "agent"), event)
    step("state_moved")
    names.release(host, record.name, record.id)


def _note(host: Host, record: AgentRecord) -> TrashNote:
    """Where HEAD stood, asked for before anything moves; a repeat after a crash keeps the first."""
    kept = _read_note(host, record.id)
    if kept is not None:
        return kept
    checkout = None
    if record.transfer == "git-worktree":
        checkout = git.checkout(Repo(run=host.run, path=record.work_dir))
    return TrashNote(
        id=record.id,
        name=record.name,
        time=time.time(),
        work_dir=record.work_dir,
        branch=checkout.branch if checkout else record.branch,
        tip=checkout.head if checkout else "",
        repository=checkout.common_dir if checkout else "",
    )


def _read_note(host: Host, agent_id: str) -> TrashNote | None:
    done = host.run(["cat", os.path.join(trash_dir(host.home, agent_id), "trash.json")], timeout=30)
    try:
        return TrashNote.from_json(decode(done.stdout)) if done.code == 0 else None
    except BadRecord:
        return None


def _move_work_dir(world: World, host: Host, record: AgentRecord, note: TrashNote) -> None:
    there = os.path.join(trash_dir(host.home, record.id), "work")
    moved = Repo(run=host.run, path=there)
    if record.transfer == "git-worktree":
        # The branch must be free for others while its work lies in the trash. update-ref, not
        # checkout: that would touch the index and run the user's hooks.
        if note.tip:
            here = Repo(run=host.run, path=record.work_dir)
            here.attempt("update-ref", "--no-deref", "-m", "mngr destroy", "HEAD", note.tip)
        step("detached")
    _script(host, 'if [ -d "$1" ] && [ ! -e "$2" ]; then mv "$1" "$2"; fi', record.work_dir, there)
    step("work_moved")
    if record.transfer == "git-worktree" and note.repository:
        repo = Repo(run=host.run, path=note.repository)
        with Lock(world.home, "repo", note.repository):
            moved.attempt("worktree", "repair", there)
            step("repaired")
            _drop_branch(repo, host, record, note)


def _drop_branch(repo: Repo, host: Host, record: AgentRecord, note: TrashNote) -> None:
    """Drop it when asked to, or when it holds nothing; its tip stays pinned for restore."""
    asked = record.removal is not None and record.removal.drop_branch
    branch = record.branch
    if not record.made_branch or not branch:
        return
    tip = git.commit_of(repo, f"refs/heads/{branch}")
    if tip is None or not (asked or tip == record.base_commit):
        return
    if git.worktree_of_branch(repo, branch):
        return  # somebody else works on it now
    repo.git("update-ref", f"refs/mngr/trash/{record.id}", tip)
    dropped = note.replace(dropped_branch=True, branch=branch, tip=note.tip or tip)
    path = os.path.join(trash_dir(host.home, record.id), "trash.json")
    host.put({path: (encode(dropped), 0o600)})
    repo.git("update-ref", "-d", f"refs/heads/{branch}", tip)
    step("branch_dropped")


def _script(host: Host, script: str, *words: str) -> str:
    done = host.run(["sh", "-c", f"umask 077; {script}", "mngr", *words], timeout=600)
    if done.code:
        raise MngrError(done.complaint)
    return os.fsdecode(done.stdout)


def trashed(world: World) -> list[Trashed]:
    """What can be restored, newest first; also what an interrupted destroy left half-way."""
    found = []
    for host in world.hosts():
        script = 'cd "$1/trash" 2>/dev/null && cat -- */trash.json 2>/dev/null || :'
        for line in _script(host, script, host.home).splitlines():
            try:
                found.append(Trashed(host=host, note=TrashNote.from_json(decode(line.encode()))))
            except BadRecord:
                continue  # doctor names it
    return sorted(found, key=lambda each: -each.note.time)


def _exists(host: Host, path: str) -> bool:
    return host.run(["test", "-e", path], timeout=30).code == 0


def find_trashed(world: World, name: str) -> Trashed:
    """The newest destroyed agent of that name or id."""
    pool = trashed(world)
    for each in pool:
        if name in (each.note.id, each.note.name):
            return each
    near = nearest(name, [each.note.name for each in pool])
    hint = f"did you mean {near!r}?" if near else "see `mngr restore --list`"
    raise NotFound(f"nothing called {name!r} in the trash", hint)


def restore(world: World, each: Trashed, new_name: str = "") -> Agent:
    """Bring it back, stopped, exactly as it was."""
    host, note = each.host, each.note
    name = new_name or note.name
    folder, state_dir = trash_dir(host.home, note.id), agent_dir(host.home, note.id)
    if _exists(host, note.work_dir) and _exists(host, os.path.join(folder, "work")):
        raise Refused(f"{note.work_dir} exists again; {note.name} cannot go back there")
    names.claim(host, name, note.id)
    step("restore_claimed")
    _restore_work_dir(world, host, note)
    step("work_restored")
    in_trash = _exists(host, os.path.join(folder, "agent"))
    _clear_removal(host, os.path.join(folder, "agent") if in_trash else state_dir, name)
    step("removal_cleared")
    if in_trash:
        _script(
            host, 'mkdir -p "${2%/*}" && mv "$1" "$2"', os.path.join(folder, "agent"), state_dir
        )
    step("state_restored")
    event = events.line(events.event("agent_restored", agent_id=note.id, agent_name=name))
    tidy = 'printf "%s\\n" "$3" >> "$2/events.jsonl"; rm -f "$1/trash.json"; rmdir "$1"'
    _script(host, tidy, folder, state_dir, event)
    return agents(world, [note.id])[0]


def _clear_removal(host: Host, state_dir: str, name: str) -> None:
    """Before the record moves, so that what is listed is never half destroyed."""
    stem = os.path.join(state_dir, "agent")
    rev, content = versioned.current(host, stem)
    record = AgentRecord.from_json(decode(content)).replace(removal=None, name=name)
    if not host.swap(stem, rev, encode(record)):
        raise Stale(f"{record.name} changed while it was being restored", "try again")


def _restore_work_dir(world: World, host: Host, note: TrashNote) -> None:
    there = os.path.join(trash_dir(host.home, note.id), "work")
    _script(
        host,
        'if [ -d "$1" ]; then mkdir -p "${2%/*}" && mv "$1" "$2"; fi',
        there,
        note.work_dir,
    )
    if not note.repository:
        return
    repo = Repo(run=host.run, path=note.repository)
    work = Repo(run=host.run, path=note.work_dir)
    with Lock(world.home, "repo", note.repository):
        work.attempt("worktree", "repair", note.work_dir)
        _reattach(repo, work, note)


def _reattach(repo: Repo, work: Repo, note: TrashNote) -> None:
    """Back onto its branch, unless that moved on or somebody else took it meanwhile."""
    ref = f"refs/heads/{note.branch}"
    if not note.branch or not note.tip:
        return
    if note.dropped_branch and not git.branch_exists(repo, note.branch):
        repo.git("update-ref", ref, note.tip)
        repo.attempt("update-ref", "-d", f"refs/mngr/trash/{note.id}")
    if git.commit_of(repo, ref) == note.tip and git.worktree_of_branch(repo, note.branch) is None:
        work.git("symbolic-ref", "-m", "mngr restore", "HEAD", ref)


def purge(world: World, each: Trashed) -> None:
    """Remove for good what was destroyed; there is no undo after this."""
    host, note = each.host, each.note
    folder = trash_dir(host.home, note.id)
    if note.repository:
        repo = Repo(run=host.run, path=note.repository)
        with Lock(world.home, "repo", note.repository):
            repo.attempt("worktree", "remove", "--force", "--force", os.path.join(folder, "work"))
            repo.attempt("update-ref", "-d", f"refs/mngr/trash/{note.id}")
            git.delete_refs(repo, f"refs/mngr/snapshots/{note.id}/")
    mirror.unpin(host, note.id)
    box = sandboxing.path(host.home, note.id)
    _script(host, 'chmod -R u+rwX "$1" 2>/dev/null; rm -rf "$1" "$2"', folder, box)
