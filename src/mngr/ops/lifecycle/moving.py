"""Move agents of one repository to the trash, and update git's records, in one call."""

from __future__ import annotations

import os

from mngr.errors import MngrError, NotFound, Stale
from mngr.git.exchange import Bare
from mngr.hosts import agent_files, tmux
from mngr.hosts.base import Host
from mngr.locks import Lock
from mngr.model import events
from mngr.model.quoting import join, quote
from mngr.model.records import AgentRecord, TrashNote
from mngr.model.struct import Struct
from mngr.ops.steps import step_of_script
from mngr.ops.work import identity
from mngr.ops.work.identity import Repository, Seen
from mngr.ops.world import World

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set


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

    @property
    def worktree_of(self) -> str:
        """Return the repository that has the work directory as a worktree, or ""."""
        return self.note.repository if self.note.worktree else ""


# Arguments: six words for each agent, from `_words`. An agent is moved only if its record has not
# changed since it was read. Print the id and the error of each failure, and `refs` if the
# transaction failed.
#
# A work directory that is already in the trash is the result of an interrupted move between two
# disks; it is kept under another name. Earlier versions of mngr could create two state directories
# for one agent; both are kept. Only `gitdir` is rewritten, which is all that `git worktree repair`
# would change, in many more steps. An agent can replace it by a link or a pipe.
MOVE = r"""
umask 077; unset CDPATH
home=$1 failed= updates=; shift
free_place() {
  to=$there/$1 number=2
  while [ -e "$to" ] || [ -h "$to" ]; do to=$there/$1-$number number=$((number + 1)); done
}
judged() {
  state=$home/agents/$1 there=$home/trash/$1
  case "$failed " in *" $1 "*) return 1 ;; esac
  problem=
  if [ ! -d "$state" ]; then problem=gone
  elif [ ! -e "$state/agent.$2.json" ]; then problem=changed
  fi
}
told() {
  [ -n "$problem" ] || return 0
  failed="$failed $1"
  printf '%s %s\n' "$1" "$(printf %s "$problem" | tail -n 1)"
}
move_work() {
  judged "$1" "$2"
  if [ -z "$problem" ] && [ -n "$3" ]; then
    free_place work; [ "$to" = "$there/work" ] || mv -- "$there/work" "$to"
    problem=$(mv -- "$3" "$there/work" 2>&1)
  fi
  told "$1"
}
repair() {
  judged "$1" "$2" && [ -n "$4" ] && [ -z "$problem" ] || return 0
  updates=$updates$5 back=$4/gitdir
  if cd -P -- "$there/work" && [ -f .git ] && [ -f "$back" ] && [ ! -h "$back" ]; then
    printf '%s\n' "$PWD/.git" > "$back"
  fi 2> /dev/null
}
move_state() {
  judged "$1" "$2" || return 0
  if [ -z "$problem" ]; then
    note "$state/events.jsonl" "$6"
    free_place agent; problem=$(mv -- "$state" "$to" 2>&1)
  fi
  told "$1"
}
all() { do=$1; shift; while [ $# -gt 0 ]; do "$do" "$@"; shift 6; done; }
all move_work "$@"
"""
MOVE_STATE = r"""
all repair "$@"; cd /
[ -z "$updates" ] || printf %s "$updates" | update_refs || echo refs
"""


def _script(host: Host, repo: Bare, look: bool) -> str:
    update = join(["git", *repo.flags, f"--git-dir={repo.path}", *UPDATE])
    sessions = f"[ ! -S {quote(host.socket)} ] || {join(tmux.list_sessions(host.socket))} || :\n"
    functions = f"update_refs() {{ {update}; }}\n{agent_files.FUNCTIONS}"
    parts = [functions, MOVE, step_of_script("work_moved"), MOVE_STATE]
    parts += [step_of_script("repaired"), 'all move_state "$@"', sessions if look else ""]
    return "\n".join(parts)


def _words(each: Condemned) -> Iterator[str]:
    """Yield id, revision, work directory, git's directory of the worktree, ref updates, event."""
    yield from (each.id, str(each.rev), each.seen.path if each.moves else "")
    git = os.path.join(each.worktree_of, "worktrees", each.note.worktree)
    yield from (git, "".join(_updates(each))) if each.worktree_of else ("", "")
    yield events.of_agent("agent_destroyed", each.id, each.record.name)


def move(
    world: World, host: Host, path: str, mine: Sequence[Condemned], settled: Set[str]
) -> tuple[dict[str, MngrError], set[str]]:
    """Move agents of one repository in one call; return errors by id, and sessions that exist."""
    repo = Bare(run=host.run, path=path)
    look = not all(each.id in settled for each in mine)
    words = [word for each in mine for word in _words(each)]
    with Lock(world.home, "repo", path):
        argv = ["sh", "-c", _script(host, repo, look), "mngr", host.home, *words]
        done = host.run(argv, timeout=600 + len(mine))
        done.raise_if_failed(f"host {host.ref.name}")
        lines = [line.partition(" ") for line in os.fsdecode(done.stdout).splitlines()]
        names = {each.id: each.record.name for each in mine}
        failures = {id: problem(names[id], what) for id, _, what in lines if what}
        said = {word for word, _, what in lines if not what}
        if "refs" in said:
            # A worktree that cannot be updated, for example because of a stale lock, does not
            # block the others.
            for each in mine:
                if each.id not in failures:
                    repo.attempt(*UPDATE, input=os.fsencode("".join(_updates(each))))
    return failures, said


def problem(name: str, what: str) -> MngrError:
    if what == "gone":
        return gone(name)
    if what == "changed":
        return Stale(f"{name} changed while it was being destroyed", "try again")
    return MngrError(f"{name} could not be moved to the trash: {what}")


def gone(name: str) -> NotFound:
    return NotFound(
        f"{name} is gone: it was destroyed in the meantime", "see `mngr restore --list`"
    )


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
