"""git with a private index: read a work tree without changing anything in it."""

from __future__ import annotations

import os

from mngr.git.repository import Checkout, GitError, complaint, read_checkout
from mngr.git.stranger import WHERE, Stranger
from mngr.git.stranger_scripts import NESTED, NO_REPOSITORY
from mngr.model.completed import Completed
from mngr.model.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# git would read a submodule with the submodule's own settings. So it is given the commit of each
# submodule and told to ignore changes in it.
FUNCTIONS = (
    NESTED
    + f"where() {{ {WHERE} }}"
    + r"""
keep_links() {
  links || return 0
  while read -r mode oid path; do
    path=${path#*"$tab"}
    case $path in \"*) refuse "the name of a submodule is not supported: $path" ;; esac
    if [ -h "$path" ] || [ ! -d "$path" ]; then
      theirs update-index --force-remove -- "$path" || return 1
      continue
    fi
    head=$( (enter_nested "$path" && theirs rev-parse -q --verify HEAD) < /dev/null 2>/dev/null)
    [ -z "$head" ] || theirs update-index --cacheinfo "160000,$head,$path" || return 1
    theirs update-index --assume-unchanged -- "$path" || return 1
  done < "$door/links"
}
# cp -p keeps the time, because git rereads a file whose entry is as old as the index. A copy with a
# later time would hide a change that was made in the same moment.
copy_index() { cp -p "$gitdir/index" "$index" || [ ! -e "$gitdir/index" ]; }
"""
)

AFRESH = rf"""
[ "$top" -ef "$work" ] || exit {NO_REPOSITORY}
{{
  theirs ls-files --others --ignored --exclude-standard --directory -z && printf '\0' &&
    {{ [ $# -eq 0 ] || theirs for-each-ref "$@"; }} && printf '\0'
}} & listing=$!
at=$(where)
index=$door/index
copy_index || exit 1
"""

# After a failed `add`, write-tree would use the old index and look like a success. --missing-ok
# skips the check of each blob, because `add` has just written the missing ones. A directory that
# cannot be listed counts as containing repositories, so that it is inspected.
TAKE = r"""
all() { theirs ls-files --stage || echo 160000; }
keep_links && theirs add -A || exit 1
theirs write-tree --missing-ok > "$door/tree" & writing=$!
all 2>/dev/null | LC_ALL=C grep -q '^160000' && linked=linked
wait "$writing" && wait $listing && read -r tree < "$door/tree" || exit 1
printf '%s\0%s' "$at" "$tree $linked"
"""

# For reading only: objects are written to the door, uncompressed because they are not kept. Files
# that git cannot store are left out.
DIFFERENCE = r"""
base=$1 shape=$2; shift 2
at=$(where)
objects=$door/objects index=$door/index failed=
mkdir -p "$objects/info" && printf '%s\n' "$common/objects" > "$objects/info/alternates" &&
  copy_index || exit 1
theirs rev-parse -q --verify --end-of-options "$base^{commit}" > "$door/old" || : > "$door/old"
read -r old < "$door/old" || old=
if [ -n "$old" ]; then
  keep_links || exit 1
  theirs -c core.looseCompression=0 add -A --ignore-errors
  case $? in 0) ;; 1) failed=failed ;; *) exit 1 ;; esac
  theirs write-tree --missing-ok > "$door/tree" && read -r tree < "$door/tree" || exit 1
  # Not `git diff`: with the user's prefixes and colours its output is not a patch.
  trees() {
    words=$1; shift
    theirs diff-tree -r $words --no-ext-diff --no-textconv --no-color --end-of-options \
      "$old" "$tree" -- "$@"
  }
  trees '--numstat -z --no-renames' "$@" > "$door/rows" || exit 1
else
  trees() { :; }
  : > "$door/rows"
fi
printf '%s\0%s\0%s\0%s\0' "$at" "$old" "$failed" $(wc -c < "$door/rows")
cat "$door/rows"
trees "$shape" "$@"
"""


class TakenTree(Struct):
    """A work tree as a git tree."""

    tree: str
    linked: bool
    """Whether it contains other repositories, of which git stores only the commit."""
    at: Checkout | None = None
    ignored: list[str] = []
    refs: list[str] = []


class Difference(Struct):
    """How a work tree differs from a commit."""

    at: Checkout | None = None
    old: str = ""
    """The commit; "" if it does not exist."""
    patch: bytes = b""
    """The exact output of `git diff`, or line counts if they were requested."""
    rows: bytes = b""
    """The output of `diff-tree --numstat -z`."""
    complaint: str = ""
    """Why something was left out."""

    @property
    def head(self) -> str:
        return self.at.head if self.at else ""

    def files(self) -> list[dict[str, Json]]:
        """Return one row per file; binary files have no line counts."""
        rows: list[dict[str, Json]] = []
        for entry in os.fsdecode(self.rows).split("\0")[:-1]:
            added, deleted, path = entry.split("\t", 2)
            counts: list[Json] = [int(n) if n.isdigit() else None for n in (added, deleted)]
            rows.append({"path": path, "added": counts[0], "deleted": counts[1]})
        return rows


def fill(work: Stranger) -> None:
    """Copy the agent's index to the index of `work`."""
    done = work.visit(FUNCTIONS + "copy_index")
    done.raise_if_failed(f"the index of {work.path} could not be copied", GitError)


def take(work: Stranger) -> TakenTree:
    """Return a tree of everything that is not ignored."""
    return _taken(work, "at= listing= linked=\n" + FUNCTIONS + TAKE)


def take_afresh(work: Stranger, *for_each_ref: str) -> TakenTree:
    """Return a tree as `take` does, from a temporary copy of the current index.

    The result includes ignored files, the position of the work tree and for-each-ref's answer. It
    is empty if this is not the top of a work tree.
    """
    return _taken(work, "linked=\n" + FUNCTIONS + AFRESH + TAKE, *for_each_ref)


def _taken(work: Stranger, script: str, *words: str) -> TakenTree:
    done = work.visit(script, *words)
    if done.code == NO_REPOSITORY:
        return TakenTree(tree="", linked=False)
    _check(work, done)
    *more, at, last = os.fsdecode(done.stdout).split("\0")
    tree, *linked = last.split()
    end = more.index("") if more else 0
    return TakenTree(
        tree=tree,
        linked=bool(linked),
        at=read_checkout(os.fsencode(at)),
        ignored=more[:end],
        refs=more[end + 1 :],
    )


def compare(work: Stranger, base: str, shape: str, paths: Sequence[str]) -> Difference:
    """Compare a commit with the current files, without writing to the repository."""
    done = work.visit(FUNCTIONS + DIFFERENCE, base, shape, *paths)
    if done.code == NO_REPOSITORY:
        return Difference()
    _check(work, done)
    at, old, failed, size, rest = done.stdout.split(b"\0", 4)
    said = done.stderr.decode("utf-8", "replace").splitlines()
    causes = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    return Difference(
        at=read_checkout(at), old=old.decode(), rows=rest[: int(size)],
        patch=rest[int(size) :], complaint="; ".join(causes[:1]) if failed else "",
    )  # fmt: skip


def _check(work: Stranger, done: Completed) -> None:
    if done.code:
        raise GitError(f"git add failed in {work.path}: {complaint(done)}")
