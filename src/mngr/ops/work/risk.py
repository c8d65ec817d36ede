"""Find work that would be lost with a work directory."""

from __future__ import annotations

import os

from mngr.errors import Refused
from mngr.git import repository as git
from mngr.hosts.base import Host
from mngr.model.records import AgentRecord, agent_dir
from mngr.model.struct import Struct
from mngr.ops.work import mirror, transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def summary(lines: Sequence[str], most: int = 5) -> str:
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(line.strip() for line in lines[:most]) + more


def uncommitted(lines: Sequence[str]) -> str:
    """Return `uncommitted changes (1 untracked file: notes.txt)` from `git status` lines."""
    paths: dict[str, list[str]] = {}
    for line in lines:
        paths.setdefault(_kind(line), []).append(line[3:] if _kind(line) != "changed" else line)
    many = (
        f"{len(each)} {kind} file{'s' * (len(each) > 1)}: {summary(each)}"
        for kind, each in paths.items()
    )
    return f"uncommitted changes ({'; '.join(many)})"


def _kind(line: str) -> str:
    """Return the kind of change of a file; for a copy there are only paths."""
    code = line[:2]
    if line[2:3] != " " or code.strip(" MADRCUT?"):
        return "changed"
    if code == "??":
        return "untracked"
    return "deleted" if "D" in code else "new" if code[0] in "ARC" else "modified"


class Risk(Struct):
    """Work that would be lost if an agent were removed permanently."""

    files: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    whole: str = ""
    """A description of all files, if there is nothing to compare them with."""

    def __bool__(self) -> bool:
        return bool(self.files or self.commits or self.whole)

    def __str__(self) -> str:
        parts = [self.whole] if self.whole else []
        if self.files:
            parts.append(uncommitted(self.files))
        if self.commits:
            parts.append(f"commits on no other branch: {summary(list(self.commits), 3)}")
        return "; ".join(parts)


def at_risk(host: Host, record: AgentRecord, *, drop_branch: bool = False) -> Risk:
    """Return changed and untracked files, and commits that no remaining ref reaches.

    For a copy, return what changed since it was made; see `mark_copied`.
    """
    if not record.made_work_dir:
        return Risk()
    if record.transfer == "rsync":
        changed = _changed(host, record)
        return _whole(host, record.work_dir) if changed is None else Risk(files=tuple(changed))
    try:
        return _judged(host, record, record.branch if drop_branch and record.made_branch else "")
    except Refused as refused:
        # The directory could not be inspected, so it may contain anything.
        return Risk(whole=f"a work directory that cannot be checked: {refused.message}")


def _judged(host: Host, record: AgentRecord, losing_branch: str) -> Risk:
    repo = transport.theirs(host, record)
    known = record.transfer in ("git-worktree", "git-mirror")
    checkout = git.checkout(repo) if known else None
    if checkout is None:
        # A copy, or a worktree whose repository is gone cannot be compared with anything.
        return _whole(host, record.work_dir)
    files, source = tuple(map(str, git.changes(repo))), transport.origin(record)
    inner = mirror.inner_commits(repo, checkout, source, record.base_commit)
    if record.transfer == "git-mirror":
        lost = mirror.unkept(repo, record.base_commit, source)
        return Risk(files=files, commits=(*lost, *inner))
    losing = f"refs/heads/{losing_branch}" if losing_branch else ""
    tips = [] if checkout.branch not in ("", losing_branch) else ["HEAD"]  # a branch keeps HEAD
    if losing and checkout.branch != losing_branch and git.branch_exists(repo, losing_branch):
        tips.append(losing)
    found = [git.unreachable_commits(repo, tip, without=losing) for tip in tips]
    commits = dict.fromkeys(line for lines in found for line in lines)
    return Risk(files=files, commits=(*commits, *inner))


def not_copied(host: Host, record: AgentRecord) -> list[str]:
    """Return commits of an agent that a clone of it does not have, and nothing else either."""
    if not record.made_work_dir or not record.transfer.startswith("git-"):
        return []
    repo, source = transport.theirs(host, record), transport.origin(record)
    checkout = git.checkout(repo)
    if checkout is None:
        return []
    inner = mirror.inner_commits(repo, checkout, source, record.base_commit)
    apart = record.transfer == "git-mirror"  # the branches of a worktree are in the repository
    return inner + (mirror.unkept(repo, "HEAD", source) if apart else [])


# $1 work directory, $2 the mark. File systems round times, so the loop waits until a change of the
# directory is newer than the mark; then every later change is, too. If find has no -cnewer, no mark
# is left.
MARK = r"""
rm -rf "$2"; set -C # a command that prepared the agent may have put a link there
: > "$2" && tries=0 || exit 1
while [ "$tries" -lt 300 ]; do
  chmod u+r "$1" && newer=$(find "$1" -prune -cnewer "$2" 2> /dev/null) || break
  [ -z "$newer" ] || exit 0
  tries=$((tries + 1)); sleep 0.01
done
rm -f "$2"
"""

# Compare the time of the last change of content, mode or name, which programs cannot set. The
# directory itself is left out: the mark changes it, and so does a move to the trash and back.
CHANGED = '[ -f "$2" ] && cd "$1" && find . ! -name . -cnewer "$2"'


def mark_copied(host: Host, record: AgentRecord) -> None:
    """Record that all files of a copy are now as mngr created them."""
    host.run(["sh", "-c", MARK, "mngr", *_places(host, record)], timeout=60)


def _places(host: Host, record: AgentRecord) -> tuple[str, str]:
    return record.work_dir, os.path.join(agent_dir(host.home, record.id), "copied")


def _changed(host: Host, record: AgentRecord) -> list[str] | None:
    """Return paths that were changed or added; None if that is unknown."""
    done = host.run(["sh", "-c", CHANGED, "mngr", *_places(host, record)], timeout=120)
    if done.code:
        return None
    found = sorted(done.stdout.decode("utf-8", "replace").splitlines())
    folders = {path.rpartition("/")[0] for path in found}  # their files are listed already
    return [path.removeprefix("./") for path in found if path not in folders]


def _whole(host: Host, work_dir: str) -> Risk:
    """Return a risk that covers all files, in one line."""
    done = host.run(
        ["sh", "-c", 'find "$1" -type f | head -n 1000 | wc -l', "mngr", work_dir], timeout=120
    )
    count = int(done.stdout.strip() or 0)
    many = f"{count}{'+' if count == 1000 else ''} files that exist nowhere else"
    many = "1 file that exists nowhere else" if count == 1 else many
    return Risk(whole=many) if count else Risk()
