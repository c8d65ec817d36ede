"""Move agents to the trash, each step for all of them at once.

The order is: write the notes, move the work directories, repair the worktrees, detach HEADs and
drop branches in one transaction, move the state directories. All but the first are one script and
one git process per repository. Each step first checks whether it has been done, so repeating the
command after a crash completes it.
"""

from __future__ import annotations

import os
import time

from mngr.errors import MngrError, Refused, Stale
from mngr.git.exchange import Bare
from mngr.hosts import spawn
from mngr.model.records import AgentRecord, TrashNote, encode
from mngr.model.struct import Struct
from mngr.ops.lifecycle import names, trash
from mngr.ops.lifecycle.moving import Condemned, gone, move, problem
from mngr.ops.steps import step
from mngr.ops.work import identity
from mngr.ops.work.identity import Repository, Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set
    from typing import TypeAlias

    from mngr.hosts.base import Host
    from mngr.ops.world import World

    DestroyResult: TypeAlias = "Destroyed | MngrError"
    Read: TypeAlias = dict[str, tuple[AgentRecord, int]]
    """Records and their revisions, by id."""

ATTEMPTS = 10


class Destroyed(Struct):
    """An agent that is in the trash, and remarks about unusual circumstances."""

    remarks: tuple[str, ...] = ()
    session: bool = False
    """Whether it has a session after all: a start at the same time launched it."""


def told(error: MngrError | OSError) -> MngrError:
    return error if isinstance(error, MngrError) else MngrError(str(error.strerror or error))


def remove(
    world: World, host: Host, read: Read, settled: Set[str] = frozenset()
) -> dict[str, DestroyResult]:
    """Move everything to the trash; repeat for agents that changed meanwhile.

    The `settled` agents are those whose last launch had a session when their processes ended:
    no start at the same time can make a session of them any more.
    """
    outcomes: dict[str, DestroyResult] = {}
    names = {id: record.name for id, (record, _) in read.items()}
    for _ in range(ATTEMPTS):
        if not read:
            break
        try:
            # Serialises this with restore, purge and other destroys of this controller.
            with trash.lock(world, host):
                outcomes |= _try_once(world, host, read, settled)
            stale = [id for id in read if isinstance(outcomes[id], Stale)]
            settled = settled - set(stale)
            read = _read_again(host, stale, outcomes)
        except (MngrError, OSError) as error:
            return {**outcomes, **dict.fromkeys(read, told(error))}
    return {id: outcomes.get(id) or gone(names[id]) for id in names}


def _read_again(host: Host, ids: Sequence[str], outcomes: dict[str, DestroyResult]) -> Read:
    """Read again the agents that are still to be removed."""
    read: Read = {}
    for evidence in host.read(ids).agents if ids else ():
        record = evidence.record
        if record is None:
            outcomes[evidence.id] = MngrError(f"{evidence.id}: {evidence.problem}")
        elif record.removal is None:
            outcomes[evidence.id] = Refused(f"{record.name} was restored in the meantime")
        else:
            read[evidence.id] = (record, evidence.rev)
    for missing in set(ids) - read.keys():
        if isinstance(outcomes[missing], Stale):
            del outcomes[missing]
    return read


def _try_once(world: World, host: Host, read: Read, settled: Set[str]) -> dict[str, DestroyResult]:
    outcomes: dict[str, DestroyResult] = {}
    condemned = _condemned(host, read, outcomes)
    host.put({trash.note_path(host, each.id): (encode(each.note), 0o600) for each in condemned})
    step("noted")
    late: set[str] = set()
    for path in sorted({each.worktree_of for each in condemned}):
        mine = [each for each in condemned if each.worktree_of == path]
        failures, sessions = move(world, host, path, mine, settled)
        outcomes |= failures
        late |= sessions
    step("state_moved")
    for each in condemned:
        if each.id not in outcomes:
            _release(host, each)
            outcomes[each.id] = Destroyed(remarks=tuple(_remarks(each)), session=each.id in late)
    return outcomes


def _release(host: Host, each: Condemned) -> None:
    record, seen = each.record, each.seen
    try:
        names.void(host, record.name, record.id, seen.claim_rev, os.fsencode(seen.claim))
    except (MngrError, OSError):
        pass  # on a full disk; the claim becomes void when its claimer ends


def _condemned(host: Host, read: Read, outcomes: dict[str, DestroyResult]) -> list[Condemned]:
    """Collect what must be known before anything moves, for agents that have not changed."""
    records = [record for record, _ in read.values()]
    seen, repositories = spawn.both(
        lambda: identity.look(host, list(read.values())), lambda: _repositories(host, records)
    )
    found = []
    for record, rev in read.values():
        one = seen[record.id]
        if one.since:
            outcomes[record.id] = problem(record.name, one.since)
            continue
        repository = repositories.get(_origin(record)) or Repository(path="")
        note = _note(record, one, repository)
        found.append(Condemned(record=record, rev=rev, seen=one, repository=repository, note=note))
    return found


def _origin(record: AgentRecord) -> str:
    """Return the recorded repository, never one that a work directory names; "" for none."""
    asked = record.transfer == "git-worktree" and record.made_work_dir
    return record.repository if asked else ""


def _repositories(host: Host, records: Sequence[AgentRecord]) -> dict[str, Repository]:
    branches: dict[str, set[str]] = {}
    for each in records:
        made = {each.branch} if each.made_branch else set()
        branches[_origin(each)] = branches.get(_origin(each), set()) | made
    branches.pop("", None)
    repos = {path: Bare(run=host.run, path=path) for path in branches}
    return {path: identity.described(repos[path], branches[path]) for path in branches}


def _note(record: AgentRecord, seen: Seen, repository: Repository) -> TrashNote:
    """Return a note with the position of HEAD before the move; a repeat keeps the first note."""
    assert record.removal
    kept = trash.parse_note(record.id, seen.note)
    # If the state is already in the trash, the note belongs to it, not to a second record.
    if kept is not None and (seen.buried or kept.removal == record.removal.time):
        return kept
    name, standing = repository.worktree(record, seen)
    branch = record.branch if record.made_branch else ""
    tip = repository.heads.get(branch, "")
    wanted = record.removal.drop_branch or tip == record.base_commit
    return TrashNote(
        id=record.id,
        name=record.name,
        time=time.time(),
        work_dir=record.work_dir,
        branch=standing.branch if name and standing else record.branch,
        tip=standing.head if name and standing else "",
        repository=repository.path if standing else "",
        worktree=name,
        origin=record.repository if record.transfer == "git-mirror" else "",
        removal=record.removal.time,
        made_branch=branch if tip else "",
        made_tip=tip,
        dropped_branch=bool(
            name and tip and wanted and not repository.elsewhere(branch, record, seen)
        ),
    )


def _remarks(each: Condemned) -> Iterator[str]:
    """Yield remarks about circumstances that a user would not expect."""
    record, seen = each.record, each.seen
    stays = record.made_work_dir and not each.moves and not seen.moved
    if stays and seen.kind:
        yield f"{record.work_dir} was not changed: it is not a work directory that mngr created"
    elif stays:
        yield f"its work directory {record.work_dir} did not exist"
    if record.transfer == "git-worktree" and seen.kind and each.moves and not each.note.worktree:
        yield f"the branch {record.branch} was not changed: no worktree of it was found there"
