"""How far the work of many agents got, asked in one visit.

With git.py, git_door.py, git_index.py and git_transfer.py the only module that builds git's argv.
"""

from __future__ import annotations

from mngr.git_scripts import DOOR, NESTED
from mngr.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.git import Run

# Worktrees of one repository share its door. One that has settings of its own gets its own, and so
# does every other repository. Each answer ends with a NUL; in it a line says how far ahead and
# behind it is, and one more line per changed file.
LOOK = (
    DOOR
    + NESTED
    + r"""
source=$1 asked=$2 upstream= end='\n'; shift 2
count() { [ -z "$1" ] || theirs rev-list --count "$2" -- 2>/dev/null; }
source_kind() { [ ! -d "$source/refs" ] || [ -e "$source/.git" ] && echo none || echo bare; }
look() {
  [ "$2" = git-worktree ] && [ -z "$private" ] || another_door
  enter "$1" "$2" "$source"
  case $asked in *ahead*) ahead=$(count "$3" "$3..HEAD") ;; esac
  case $asked in *behind*) behind=$(count "$upstream" "HEAD..$upstream") ;; esac
  printf '%s %s\n' "${ahead:--}" "${behind:--}"
  case $asked in *dirty*) ;; *) return ;; esac
  theirs status --porcelain=v1 --untracked-files=all --no-renames --ignore-submodules=dirty &&
    { ! has_modules || changed_links; } || echo '!'
}
# Listing the index would double the price. A repository in the tree that is no submodule is not
# looked into here, only before something is removed.
has_modules() { [ -e "$top/.gitmodules" ] || [ -d "$gitdir/modules" ]; }
private= ahead= behind=
case $asked$2 in
  *behind* | *git-worktree)
    # In a shell of its own first, because a source that is gone ends it.
    kind=$(source_kind)
    if (another_door; enter "$source" "$kind" '') 2>/dev/null; then
      enter "$source" "$kind" ''
      case $asked in *behind*) upstream=$(theirs rev-parse -q --verify HEAD) ;; esac
    fi ;;
esac
while [ $# -ge 3 ]; do
  (look "$1" "$2" "$3") < /dev/null 2>/dev/null || echo '!'
  printf '\0'
  shift 3
done
"""
)


class Looked(Struct):
    """How one work directory stands; None where git has no answer."""

    ahead: int | None = None
    behind: int | None = None
    dirty: int | None = None


class Asked(Struct):
    """One work directory, how it was made, and the commit it began with."""

    path: str
    kind: str
    base: str


def look(
    run: Run, home: str, source: str, names: Sequence[str], work: Sequence[Asked]
) -> list[Looked]:
    """An answer for each of several work directories that came from one source."""
    words = [word for each in work for word in (each.path, each.kind, each.base)]
    done = run(["sh", "-c", LOOK, "mngr", home, source, ",".join(names), *words], timeout=600)
    answers = done.stdout.decode("utf-8", "replace").split("\0")[:-1]
    found = [_looked(each, "dirty" in names) for each in answers]
    return found + [Looked()] * (len(work) - len(found))


def _looked(answer: str, dirty: bool) -> Looked:
    distance, *changed = answer.splitlines()
    if distance == "!":
        return Looked()
    ahead, behind = map(_number, distance.split(" "))
    seen = len(set(changed)) if dirty and "!" not in changed else None
    return Looked(ahead=ahead, behind=behind, dirty=seen)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
