"""Restore: the reverse of destroy, in steps that can be repeated after a crash."""

from __future__ import annotations

import os
import time

from mngr.errors import BadRecord, MngrError, NotFound, Refused, Stale, Unreachable
from mngr.git.exchange import Bare
from mngr.hosts import agent_files
from mngr.hosts.base import Host
from mngr.locks import Lock
from mngr.model import events
from mngr.model.records import (
    AgentRecord,
    TrashNote,
    agent_dir,
    decode,
    encode,
    is_work_dir,
    record_stem,
    trash_dir,
)
from mngr.model.state import Evidence, Judgement, State
from mngr.model.struct import Struct
from mngr.ops import versioned
from mngr.ops.lifecycle import names, trash
from mngr.ops.lifecycle.trash import Trashed
from mngr.ops.look.listing import Agent, refreshed
from mngr.ops.steps import step
from mngr.ops.work import identity
from mngr.ops.work.identity import Repository, Seen
from mngr.ops.world import World


class Returned(Struct):
    """A restored agent, and remarks about what differs from before."""

    agent: Agent
    work_dir: bool
    """Whether its work directory exists."""
    branch: str
    """The branch that its HEAD is on."""
    remarks: tuple[str, ...] = ()


class Buried(Struct):
    """One agent in the trash, as it was just read."""

    record: AgentRecord
    rev: int
    stem: str
    seen: Seen
    note: TrashNote

    @property
    def path(self) -> str:
        """Return the path at which git will find the work directory, with all links resolved."""
        base = os.path.basename(self.record.work_dir)
        return os.path.join(self.seen.worktrees, base) if self.seen.moved else self.seen.path


def restore(world: World, each: Trashed, new_name: str = "") -> Returned:
    """Restore a destroyed agent, stopped, exactly as it was."""
    host, agent_id = each.host, each.note.id
    name = new_name or each.note.name
    with trash.lock(world, host):
        buried = _read(host, agent_id, each.note.name)
        _refuse(host, buried)
        names.claim(host, name, agent_id)
        step("restore_claimed")
        try:
            branch, remarks = _restore(world, host, buried, name)
        except (MngrError, OSError):
            names.release(host, name, agent_id)
            raise
    step("restored")
    there = bool(buried.seen.moved or buried.seen.kind == "directory")
    record = buried.record.replace(removal=None, name=name)
    agent = _read_again(world, host, record)
    return Returned(agent=agent, work_dir=there, branch=branch, remarks=tuple(remarks))


def _read_again(world: World, host: Host, record: AgentRecord) -> Agent:
    """Return the restored agent as its host shows it; UNREACHABLE if it no longer answers."""
    now = time.time()
    unknown = Judgement(
        state=State.UNREACHABLE, reason="restored; its host did not answer afterwards", since=now
    )
    evidence = Evidence(id=record.id, rev=0, record=record)
    agent = Agent(host=host, evidence=evidence, verdict=unknown, now=now)
    try:
        return refreshed(world, agent)
    except Unreachable as error:
        world.note(host.ref.name, error)
        return agent


def _restore(world: World, host: Host, buried: Buried, name: str) -> tuple[str, list[str]]:
    record = buried.record
    if buried.seen.moved:
        trash.script(host, MOVE_BACK, trash.work_path(host, record.id), record.work_dir)
    branch, remarks = _tell_git(world, host, buried)
    step("work_restored")
    # This comes before the record moves, so that a listed agent is never half destroyed.
    edited = record.replace(removal=None, name=name)
    if edited != record and not host.swap(buried.stem, buried.rev, encode(edited)):
        raise Stale(f"{record.name} changed while it was being restored", "try again")
    step("removal_cleared")
    state_dir = agent_dir(host.home, record.id)
    if buried.seen.buried:
        trash.script(host, MOVE_BACK, os.path.dirname(buried.stem), state_dir)
    step("state_restored")
    event = events.of_agent("agent_restored", record.id, name)
    trash.script(host, TIDY, trash_dir(host.home, record.id), state_dir, event)
    return branch, remarks


# Check first: mv would move $1 into an existing directory $2.
MOVE_BACK = r"""
[ ! -e "$2" ] && [ ! -h "$2" ] || { echo "$2 exists" >&2; exit 1; }
mkdir -p "${2%/*}" && mv -- "$1" "$2"
"""

# `git worktree repair` would also write a `.git` file where other worktrees claim to be.
REPAIR = r"""
unset CDPATH; cd -P -- "$1" && [ -f "$2/gitdir" ] && [ ! -h "$2/gitdir" ] &&
  printf '%s\n' "$PWD/.git" > "$2/gitdir"
"""

TIDY = (
    agent_files.FUNCTIONS
    + """note "$2/events.jsonl" "$3"
rm -f "$1/trash.json"; rmdir "$1" 2>/dev/null || :
"""
)


def _read(host: Host, agent_id: str, name: str) -> Buried:
    """Read the entry again: it may have been restored or purged since it was listed."""
    stems = (os.path.join(trash_dir(host.home, agent_id), "agent", "agent"),)
    for stem in (*stems, record_stem(host.home, agent_id)):
        rev, content = versioned.current(host, stem)
        if rev:
            break
    else:
        raise NotFound(f"{name} is no longer in the trash", "see `mngr restore --list`")
    record = AgentRecord.from_json(decode(content))
    if record.id != agent_id:
        raise BadRecord(f"the record in {os.path.dirname(stem)} belongs to {record.id}")
    seen = identity.look(host, [(record, rev)])[agent_id]
    note = trash.parse_note(agent_id, seen.note)
    if note is None:
        raise NotFound(f"{name} is no longer in the trash", "see `mngr list`")
    return Buried(record=record, rev=rev, stem=stem, seen=seen, note=note)


def _refuse(host: Host, buried: Buried) -> None:
    """Raise if the restore cannot be completed, before anything is changed."""
    record, seen = buried.record, buried.seen
    state_dir = agent_dir(host.home, record.id)
    if seen.buried and host.run(["test", "-e", state_dir], timeout=30).code == 0:
        raise Refused(f"{state_dir} exists: {record.name} has two records", "run `mngr gc` first")
    if not seen.moved:
        return
    if seen.kind:
        raise Refused(
            f"{record.name} cannot be restored: its work directory {record.work_dir} exists again",
            "move that directory away, then try again",
        )
    folder = os.path.dirname(record.work_dir)
    ours = folder == os.path.join(host.home, "worktrees") or _same(host, folder)
    if not ours or not is_work_dir(folder, record.id, record.work_dir):
        where = trash.work_path(host, record.id)
        raise Refused(
            f"{record.name} cannot be restored: {record.work_dir} is not in the directory where"
            " mngr creates work directories",
            f"its files are in {where}",
        )


def _same(host: Host, folder: str) -> bool:
    """Return whether the path is another spelling of mngr's directory of work directories."""
    check = '[ "$(cd -P -- "$1" && pwd -P)" = "$(cd -P -- "$2/worktrees" && pwd -P)" ]'
    return host.run(["sh", "-c", check, "mngr", folder, host.home], timeout=30).code == 0


def _tell_git(world: World, host: Host, buried: Buried) -> tuple[str, list[str]]:
    """Repair the worktree in its own repository; return the branch HEAD is on, and remarks."""
    note, seen = buried.note, buried.seen
    name = note.worktree or os.path.basename(seen.admin)
    if not seen.moved and not identity.movable(buried.record, seen):
        return "", []
    if not note.repository or seen.admin != os.path.join(note.repository, "worktrees", name):
        gone = f"its .git file does not name a worktree of {note.repository}, which was not changed"
        return "", [gone] if note.repository else []
    repo = Bare(run=host.run, path=note.repository)
    with Lock(world.home, "repo", note.repository):
        host.run(["sh", "-c", REPAIR, "mngr", buried.path, seen.admin], timeout=30)
        _recreate_branch(repo, note)
        return _reattach(repo, identity.described(repo, {note.branch}), buried, name)


def _recreate_branch(repo: Bare, note: TrashNote) -> None:
    branch, tip = note.made_branch or note.branch, note.made_tip or note.tip
    if note.dropped_branch and branch and tip:
        # This fails if the branch exists again; then the existing branch is kept.
        zero = "0" * len(tip)
        done = repo.attempt("update-ref", "-m", "mngr restore", f"refs/heads/{branch}", tip, zero)
        if done.code == 0:
            repo.attempt("update-ref", "-d", f"refs/mngr/trash/{note.id}")


def _reattach(repo: Bare, now: Repository, buried: Buried, name: str) -> tuple[str, list[str]]:
    """Attach HEAD to its branch, unless that would hide a commit or the branch is in use."""
    note, standing = buried.note, now.worktrees.get(buried.path)
    if standing is None:
        return "", [f"git does not know {buried.path} as a worktree of {note.repository}"]
    if standing.branch or not note.branch:
        return standing.branch, []
    short = standing.head[:12]
    if standing.head != note.tip:
        ref = f"refs/mngr/kept/{note.id}/{short}"
        repo.git("update-ref", ref, standing.head)
        remark = f"HEAD is detached at {short}, committed while it was in the trash (kept as {ref})"
        return "", [f"{remark}; the branch {note.branch} is not checked out"]
    detached = f"HEAD is detached at {short}: the branch {note.branch}"
    if now.heads.get(note.branch) != note.tip:
        return "", [f"{detached} {'has moved' if note.branch in now.heads else 'is gone'}"]
    if now.elsewhere(note.branch, buried.record, buried.seen):
        return "", [f"{detached} is checked out elsewhere"]
    admin = Bare(run=repo.run, path=os.path.join(note.repository, "worktrees", name))
    admin.git("symbolic-ref", "-m", "mngr restore", "HEAD", f"refs/heads/{note.branch}")
    return note.branch, []
