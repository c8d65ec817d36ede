"""Verify what a work directory is before it is moved or git's data is changed.

A record can be edited, a directory replaced, and a `.git` file can be missing or name any other
repository. So a directory is moved only from the place where mngr creates such directories, and
git's data is changed only in the recorded repository, and only if that repository lists the
directory.
"""

from __future__ import annotations

import os

from mngr.errors import MngrError, Refused
from mngr.git.exchange import Bare
from mngr.git.stranger_scripts import REFUSED
from mngr.hosts.base import Host
from mngr.model.quoting import join
from mngr.model.records import AgentRecord, is_work_dir
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Print the data about all agents in one call, as fields that end in NUL. For each agent: the note
# in the trash; the revision of the newest claim of its name, and the claim; the kind of file at the
# work directory's path, and that path with links resolved; the git directory that its `.git` file
# names (or that of the work directory in the trash), if that names this work directory, perhaps by
# its path before an interrupted move; the path of the work directory in the trash; whether its
# state directory is in the trash; whether the record has changed since it was read.
LOOK = r"""
home=$1; shift; unset CDPATH
# This starts no process, unlike `$(pwd -P)`. Every path here is absolute.
really() { real=; ! cd -P -- "$1" 2>/dev/null || real=$PWD; }
line() { said=; [ ! -f "$1" ] || [ -h "$1" ] || IFS= read -r said < "$1" || :; }
field() { printf '%s\0' "$1"; }
# An agent can write another worktree's git directory into its `.git` file.
is_mine() {
  case $said in /*) ;; *) said=$admin/$said ;; esac
  [ "$said" -ef "$work/.git" ] || [ "$said" = "$before/.git" ] || [ "$said" = "$real/work/.git" ]
}
really "$home/worktrees"; field "$real"; worktrees=$real
while [ $# -gt 0 ]; do
  line "$home/trash/$1/trash.json"; field "$said"
  best=0
  for file in "$home/names/$2".*.json; do
    rev=${file#"$home/names/$2".}; rev=${rev%.json}
    case $rev in *[!0-9]*|'') continue ;; esac
    [ "$rev" -le "$best" ] || best=$rev
  done
  line "$home/names/$2.$best.json"; field "$best"; field "$said"
  work=$3 moved=$home/trash/$1/work
  if [ -d "$work" ] && [ ! -h "$work" ]; then
    really "${work%/*}"; field directory; field "$real/${work##*/}"
  else
    if [ -e "$work" ] || [ -h "$work" ]; then field other; else field ''; fi
    field ''
    work=$moved
  fi
  line "$work/.git"
  real=
  case $said in
    "gitdir: /"*) really "${said#gitdir: }" ;;
    "gitdir: "*) really "$work/${said#gitdir: }" ;;
  esac
  admin=$real before=$worktrees/${3##*/}
  line "$admin/gitdir"; really "$home/trash/$1"
  if is_mine; then field "$admin"; else field ''; fi
  real=
  [ ! -d "$moved" ] || [ -h "$moved" ] || really "$moved"
  field "$real"
  if [ -e "$home/trash/$1/agent" ]; then field agent; else field ''; fi
  if [ -e "$home/agents/$1/agent.$4.json" ]; then field ''
  elif [ -e "$home/agents/$1" ]; then field changed
  else field gone
  fi
  shift 4
done
"""
FIELDS = 9


class Seen(Struct):
    """The data found on the host for one agent."""

    worktrees: str
    """The directory of all work directories, with links resolved."""
    note: str
    claim_rev: int
    claim: str
    kind: str
    """`directory`, `other` (a link, a file) or nothing."""
    path: str
    """The path of the work directory, with links resolved."""
    admin: str
    """The git directory that its `.git` file names, if both name each other."""
    moved: str
    """The path of its work directory in the trash; empty if it is not there."""
    buried: bool
    """Whether its state directory is in the trash."""
    since: str
    """Empty if the record is as it was read, else `changed` or `gone`."""


def look(host: Host, read: Sequence[tuple[AgentRecord, int]]) -> dict[str, Seen]:
    """Read all agents in one round trip, each record with its revision."""
    records = [record for record, _ in read]
    words = [word for each, rev in read for word in (each.id, each.name, each.work_dir, str(rev))]
    done = host.run(["sh", "-c", LOOK, "mngr", host.home, *words], timeout=60 + len(records))
    fields = os.fsdecode(done.stdout).split("\0")
    if done.code or len(fields) != 2 + FIELDS * len(records):
        raise MngrError(f"host {host.ref.name}: {done.complaint}")
    rows = (fields[at : at + FIELDS] for at in range(1, len(fields) - 1, FIELDS))
    return {
        record.id: Seen(
            worktrees=fields[0], note=note, claim_rev=int(rev), claim=claim, kind=kind, path=path,
            admin=admin, moved=moved, buried=bool(buried), since=since,
        )
        for record, (note, rev, claim, kind, path, admin, moved, buried, since) in zip(
            records, rows, strict=True
        )
    }  # fmt: skip


def movable(record: AgentRecord, seen: Seen) -> bool:
    """Return whether the work directory is where mngr creates it for this agent."""
    return seen.kind == "directory" and is_work_dir(seen.worktrees, record.id, seen.path)


class Worktree(Struct):
    """One line of `git worktree list`."""

    head: str
    branch: str


class Repository(Struct):
    """The worktrees and branches of a repository."""

    path: str
    """The git common directory."""
    worktrees: dict[str, Worktree] = {}
    """By path."""
    holders: dict[str, list[str]] = {}
    """Where each branch is checked out."""
    heads: dict[str, str] = {}

    def worktree(self, record: AgentRecord, seen: Seen) -> tuple[str, Worktree | None]:
        """Return git's entry if it and the directory name each other, and git's listing."""
        path = seen.path if movable(record, seen) else "" if seen.kind else seen.moved
        folder, name = os.path.split(seen.admin)
        listed = self.worktrees.get(path) or self.worktrees.get(_before(record, seen))
        mine = path and listed and folder == os.path.join(self.path, "worktrees")
        return name if mine else "", listed

    def elsewhere(self, branch: str, record: AgentRecord, seen: Seen) -> bool:
        """Return whether another worktree has the branch checked out."""
        mine = (seen.path, seen.moved, _before(record, seen))
        return any(path not in mine for path in self.holders.get(branch, ()))


def _before(record: AgentRecord, seen: Seen) -> str:
    """Return the path that git has for a worktree that was moved but not yet repaired."""
    return os.path.join(seen.worktrees, os.path.basename(record.work_dir)) if seen.moved else ""


# An agent can write to git's refs and to the records of its worktree; git would wait for a named
# pipe there. Checking only the refs of worktrees, if git reads no others, starts no process.
GUARDED = rf"""
common=$1 command=$2; shift 2; unset CDPATH; odd=
check() {{ [ -f "$1" ] || [ ! -e "$1" ] || odd=$1; }}
if [ "$command" = for-each-ref ]; then
  odd=$(find -H "$common/refs" ! -type f ! -type d 2>/dev/null | head -n 1)
else
  cd "$common/worktrees" 2>/dev/null && for each in */gitdir */commondir */locked */HEAD; do
    check "$each"
    for level in 1 2 3 4 5 6; do  # git follows no more than five
      case $each in *HEAD | /*) ;; *) break ;; esac
      [ -z "$odd" ] && [ -f "$each" ] && IFS= read -r line < "$each" || break
      case $line in 'ref: '*) each=$common/${{line#ref: }}; check "$each" ;; *) break ;; esac
    done
  done
fi
case $odd in '' | /*) ;; *) odd=$PWD/$odd ;; esac
[ -z "$odd" ] || {{ printf '%s is not a regular file\n' "$odd" >&2; exit {REFUSED}; }}
exec git "$@" --git-dir="$common" "$command" WORDS
"""


def _guarded(repo: Bare, command: str, *words: str) -> str | None:
    """Return the output of a git command that reads refs, or None if it fails."""
    script = GUARDED.replace("WORDS", join(words))
    given = ["sh", "-c", script, "mngr", repo.path, command, *repo.flags]
    done = repo.run(given, timeout=repo.timeout)
    if done.code == REFUSED:
        raise Refused(f"git was not run in {repo.path}: {done.complaint}", "remove that file")
    return None if done.code else os.fsdecode(done.stdout)


def described(repo: Bare, branches: set[str]) -> Repository:
    """Return its worktrees and those branches; one git call if all are checked out."""
    listed = _guarded(repo, "worktree", "list", "--porcelain", "-z")
    if listed is None:
        return Repository(path="")
    worktrees = _worktrees(listed)
    heads = {each.branch: each.head for each in worktrees.values() if each.branch}
    holders: dict[str, list[str]] = {}
    for path, each in worktrees.items():
        holders.setdefault(each.branch, []).append(path)
    if not branches <= heads.keys():
        form = "--format=%(refname:lstrip=2) %(objectname)"
        said = _guarded(repo, "for-each-ref", form, "refs/heads/") or ""
        heads = {branch: tip for branch, _, tip in (x.rpartition(" ") for x in said.splitlines())}
    return Repository(path=repo.path, worktrees=worktrees, holders=holders, heads=heads)


def _worktrees(listed: str) -> dict[str, Worktree]:
    found = {}
    for block in listed.split("\0\0"):
        said = dict(line.partition(" ")[::2] for line in block.split("\0") if line)
        branch = said.get("branch", "").removeprefix("refs/heads/")
        if "worktree" in said:
            found[said["worktree"]] = Worktree(head=said.get("HEAD", ""), branch=branch)
    return found
