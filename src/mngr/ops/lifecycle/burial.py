"""Move agents to the trash, each step for all of them at once.

The order is: write the notes, move the work directories, repair the worktrees, detach HEADs and
drop branches in one transaction, move the state directories. Each step is one round trip to the
host or one git process per repository, and first checks whether it has been done, so repeating the
command after a crash completes it.
"""

from __future__ import annotations

import os
import time

from mngr.errors import MngrError, NotFound, Refused, Stale
from mngr.git.exchange import Bare
from mngr.hosts import spawn, tmux
from mngr.locks import Lock
from mngr.model import events
from mngr.model.quoting import join, quote
from mngr.model.records import AgentRecord, TrashNote, encode
from mngr.model.struct import Struct
from mngr.ops.lifecycle import names, trash
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


class Condemned(Struct):
    """One agent that is being moved to the trash, as it was just read."""

    record: AgentRecord
    rev: int
    seen: Seen
    repository: Repository
    note: TrashNote

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def moves(self) -> bool:
        return self.record.made_work_dir and identity.movable(self.record, self.seen)


def told(error: MngrError | OSError) -> MngrError:
    return error if isinstance(error, MngrError) else MngrError(str(error.strerror or error))


def gone(name: str) -> NotFound:
    return NotFound(
        f"{name} is gone: it was destroyed in the meantime", "see `mngr restore --list`"
    )


def bury(
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
                outcomes |= _bury_once(world, host, read, settled)
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


def _bury_once(world: World, host: Host, read: Read, settled: Set[str]) -> dict[str, DestroyResult]:
    outcomes: dict[str, DestroyResult] = {}
    condemned = _condemned(host, read, outcomes)
    host.put({trash.note_path(host, each.id): (encode(each.note), 0o600) for each in condemned})
    step("noted")
    moving = [each for each in condemned if each.moves]
    words = [word for each in moving for word in (each.id, str(each.rev), each.seen.path)]
    outcomes |= _failures(host, moving, MOVE_WORK, words)[0]
    step("work_moved")
    left = [each for each in condemned if each.id not in outcomes]
    _tell_git(world, host, [each for each in left if each.note.worktree])
    step("repaired")
    words = [word for each in left for word in (each.id, str(each.rev), _event(each.record))]
    sessions = f"[ ! -S {quote(host.socket)} ] || {join(tmux.list_sessions(host.socket))} || :"
    look = "" if all(each.id in settled for each in left) else sessions
    failures, late = _failures(host, left, MOVE_STATE + look, words)
    outcomes |= failures
    step("state_moved")
    for each in left:
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


def _event(record: AgentRecord) -> str:
    event = events.event("agent_destroyed", agent_id=record.id, agent_name=record.name)
    return events.line(event)


def _condemned(host: Host, read: Read, outcomes: dict[str, DestroyResult]) -> list[Condemned]:
    """Collect what must be known before anything moves, for agents that have not changed."""
    repositories: dict[tuple[str, str], Repository] = {}
    records = [record for record, _ in read.values()]
    seen = spawn.beside(
        lambda: identity.look(host, list(read.values())),
        lambda: repositories.update(_repositories(host, records)),
    )
    found = []
    for record, rev in read.values():
        one = seen[record.id]
        if one.since:
            outcomes[record.id] = _problem(record.name, one.since)
            continue
        repository = repositories.get(_origin(record)) or Repository(path="")
        note = _note(record, one, repository)
        found.append(Condemned(record=record, rev=rev, seen=one, repository=repository, note=note))
    return found


def _origin(record: AgentRecord) -> tuple[str, str]:
    """Return the recorded repository; empty strings if git must not be asked."""
    asked = record.transfer == "git-worktree" and record.made_work_dir
    return (record.repository, record.source) if asked else ("", "")


def _repositories(host: Host, records: Sequence[AgentRecord]) -> dict[tuple[str, str], Repository]:
    return {
        origin: identity.repository(host, [each for each in records if _origin(each) == origin])
        for origin in {_origin(record) for record in records} - {("", "")}
    }


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


# Nothing moves unless the record is the one that was judged. Prints the id and what went wrong.
MOVE = r"""
umask 077
home=$1; shift
while [ $# -gt 0 ]; do
  state=$home/agents/$1 there=$home/trash/$1 problem=
  if [ ! -d "$state" ]; then problem=gone
  elif [ ! -e "$state/agent.$2.json" ]; then problem=changed
  else
    ACTION
  fi
  [ -z "$problem" ] || printf '%s %s\n' "$1" "$(printf %s "$problem" | tail -n 1)"
  shift 3
done
"""
# What is there already is half of a move between two disks that was interrupted: kept, aside.
MOVE_WORK = MOVE.replace(
    "ACTION",
    r"""to=$there/work number=2
    while [ -e "$to" ] || [ -h "$to" ]; do to=$there/work-$number number=$((number + 1)); done
    [ "$to" = "$there/work" ] || mv -- "$there/work" "$to"
    problem=$(mv -- "$3" "$there/work" 2>&1)""",
)
# Two state directories of one agent: an earlier version of mngr could make them. Both are kept.
MOVE_STATE = MOVE.replace(
    "ACTION",
    r"""log=$state/events.jsonl
    if [ ! -h "$log" ] && { [ -f "$log" ] || [ ! -e "$log" ]; }; then
      printf '%s\n' "$3" >> "$log"
    fi
    to=$there/agent number=2
    while [ -e "$to" ]; do to=$there/agent-$number number=$((number + 1)); done
    problem=$(mv -- "$state" "$to" 2>&1)""",
)


def _failures(
    host: Host, condemned: Sequence[Condemned], script: str, words: Sequence[str]
) -> tuple[dict[str, DestroyResult], set[str]]:
    """Run a script that moves directories of these agents; return errors by id, and other words."""
    if not condemned:
        return {}, set()
    names = {each.id: each.record.name for each in condemned}
    argv = ["sh", "-c", script, "mngr", host.home, *words]
    done = host.run(argv, timeout=600 + len(condemned))
    if done.code:
        raise MngrError(f"host {host.ref.name}: {done.complaint}")
    lines = [line.partition(" ") for line in os.fsdecode(done.stdout).splitlines()]
    failures = {agent_id: _problem(names[agent_id], what) for agent_id, _, what in lines if what}
    return {**failures}, {word for word, _, what in lines if not what}


def _problem(name: str, what: str) -> MngrError:
    if what == "gone":
        return gone(name)
    if what == "changed":
        return Stale(f"{name} changed while it was being destroyed", "try again")
    return MngrError(f"{name} could not be moved to the trash: {what}")


def _tell_git(world: World, host: Host, condemned: Sequence[Condemned]) -> None:
    """Update git's records of the moved worktrees, and free their branches."""
    for path in sorted({each.note.repository for each in condemned}):
        mine = [each for each in condemned if each.note.repository == path]
        repo = Bare(run=host.run, path=path)
        with Lock(world.home, "repo", path):
            updates = {each.id: "".join(_updates(each)) for each in mine}
            if not _repair(host, repo, mine, "".join(updates.values())):
                # A worktree that cannot be updated, for example because of a stale lock, does not
                # block the others.
                for update in updates.values():
                    repo.attempt(*UPDATE, input=os.fsencode(update))


# What `git worktree repair` does in many more steps. Words: git's directory of each worktree and
# the moved directory; then a command of git. An agent can replace `gitdir` by a link or a pipe.
REPAIR = r"""
unset CDPATH
while [ "$1" != -- ]; do
  back=$1/gitdir
  if cd -P -- "$2" && [ -f .git ] && [ -f "$back" ] && [ ! -h "$back" ]; then
    printf '%s\n' "$PWD/.git" > "$back"
  fi 2> /dev/null
  shift 2
done
shift; cd /
"$@"
"""


def _repair(host: Host, repo: Bare, moved: Sequence[Condemned], updates: str) -> bool:
    """Tell git where the worktrees are now, then update refs; return whether that succeeded."""
    words = []
    for each in moved:
        admin = os.path.join(repo.path, "worktrees", each.note.worktree)
        words += [admin, trash.work_path(host, each.id)]
    words += ["--", "git", *repo.flags, f"--git-dir={repo.path}", *UPDATE]
    script = ["sh", "-c", REPAIR, "mngr", *words]
    return host.run(script, input=os.fsencode(updates), timeout=repo.timeout).code == 0


def _updates(each: Condemned) -> Iterator[str]:
    """Yield ref updates that detach HEAD in place: a checkout would change the index."""
    note, repository = each.note, each.repository
    standing = repository.worktree(each.record, each.seen)[1]
    if standing and standing.branch and standing.head.strip("0"):
        yield f"option no-deref\nupdate worktrees/{note.worktree}/HEAD {standing.head}\n"
    there = repository.heads.get(note.made_branch) == note.made_tip
    if note.dropped_branch and there and not _taken(each):
        yield f"update refs/mngr/trash/{note.id} {note.made_tip}\n"
        yield f"delete refs/heads/{note.made_branch} {note.made_tip}\n"


def _taken(each: Condemned) -> bool:
    return each.repository.elsewhere(each.note.made_branch, each.record, each.seen)


UPDATE = ("update-ref", "-m", "mngr destroy", "--stdin")


def _remarks(each: Condemned) -> Iterator[str]:
    """Yield remarks about circumstances that a user would not expect."""
    record, seen = each.record, each.seen
    stays = record.made_work_dir and not each.moves and not seen.moved
    if stays and seen.kind:
        yield f"{record.work_dir} was left alone: it is not a work directory mngr made for it"
    elif stays:
        yield f"its work directory {record.work_dir} did not exist"
    if record.transfer == "git-worktree" and seen.kind and each.moves and not each.note.worktree:
        yield f"the branch {record.branch} was left alone: no worktree of it was found there"
