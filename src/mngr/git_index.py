"""git with an index of our own: a work tree taken up as it is, while nobody there notices.

With git.py and git_transfer.py the only module that builds git's argv.
"""

from __future__ import annotations

import os

from mngr.git import GitError, Repo, complaint
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.git import Completed

STANDING = (
    *("rev-parse", "--show-prefix", "--path-format=absolute", "--git-common-dir"),
    *("--git-path", "index", "HEAD", "--symbolic-full-name", "HEAD"),
)

# Every script is given the work tree, our index, and perhaps what to ask for-each-ref.
THERE = r"""
work=$1 index=$2 at= listing= links=; shift 2
there() { git -c core.hooksPath=/dev/null -C "$work" "$@"; }
"""

# cp -p: git takes an entry as old as the index itself for doubtful and looks at the file. A copy
# with a younger time would hide a change made in that very moment.
NO_WORK_TREE = 9
AFRESH = rf"""
{{
  there ls-files --others --ignored --exclude-standard --directory -z && printf '\0' &&
    {{ [ $# -eq 0 ] || there for-each-ref "$@"; }} && printf '\0'
}} & listing=$!
line='
'
at=$(there {" ".join(STANDING)} 2>/dev/null)
case $at in "$line"*"$line"*) ;; *) wait; exit {NO_WORK_TREE} ;; esac
from=${{at#*"$line"*"$line"}}
from=${{from%%"$line"*}}
trap 'rm -f "$index" "$index.lock" "$index.tree"' EXIT
trap 'exit 130' HUP INT TERM
cp -p "$from" "$index" || [ ! -e "$from" ] || exit 1
"""

# After a failed `add`, write-tree would go on with what was there before and look like a success.
# --missing-ok: without looking for each blob, for `add` has just written those that were missing.
# What cannot be listed counts as holding repositories, so that somebody looks.
TAKE = r"""
export GIT_INDEX_FILE="$index"
all() { there ls-files --stage || echo 160000; }
there add -A || exit 1
there write-tree --missing-ok > "$index.tree" & writing=$!
all 2>/dev/null | LC_ALL=C grep -q '^160000' && links=links
wait "$writing" && wait $listing && read -r tree < "$index.tree" || exit 1
printf '%s\0%s' "$at" "$tree $links"
"""


class Taken(Struct):
    """A work tree as git holds it."""

    tree: str
    linked: bool
    """Whether repositories are part of it, of which git holds no more than a commit's name."""
    standing: str = ""
    ignored: list[str] = []
    refs: list[str] = []


class Indexed(Repo):
    """The same work tree seen through another index file; no hook of the user's runs."""

    index: str
    timeout: float = 3600.0

    def attempt(self, *args: str, input: bytes | None = None) -> Completed:
        quiet = ["git", "-c", "core.hooksPath=/dev/null", "-C", self.path]
        words = ["env", f"GIT_INDEX_FILE={self.index}", *quiet, *args]
        return self.run(words, input=input, timeout=self.timeout)

    def take(self) -> Taken:
        """Everything that is not ignored, as a tree."""
        return self._taken(THERE + TAKE)

    def take_afresh(self, *for_each_ref: str) -> Taken:
        """As `take`, beginning with the index that is there, and leaving none behind.

        What is ignored, where the work tree stands and for-each-ref's answer come along. If it is
        not the top of a work tree, all that is empty.
        """
        return self._taken(THERE + AFRESH + TAKE, *for_each_ref)

    def _taken(self, script: str, *words: str) -> Taken:
        argv = ["sh", "-c", script, "mngr", self.path, self.index, *words]
        done = self.run(argv, timeout=self.timeout)
        if done.code == NO_WORK_TREE:
            return Taken(tree="", linked=False)
        if done.code:
            raise GitError(f"git add failed in {self.path}: {complaint(done)}")
        *more, standing, last = os.fsdecode(done.stdout).split("\0")
        tree, *linked = last.split()
        end = more.index("") if more else 0
        return Taken(
            tree=tree,
            linked=bool(linked),
            standing=standing,
            ignored=more[:end],
            refs=more[end + 1 :],
        )
