"""Count the commits and changes of many agents in one round trip."""

from __future__ import annotations

from mngr.git.stranger_scripts import DOOR, NESTED
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mngr.git.repository import Repo, Runner
    from mngr.model.records import AgentRecord

# Worktrees of one repository share its door. A worktree with its own settings gets its own door,
# and so does every other repository. Each answer ends with a NUL; it has one line with the commits
# ahead and behind, and one line per changed file.
LOOK = (
    DOOR
    + NESTED
    + r"""
source=$1 asked=$2 upstream=$3 end='\n'; shift 3
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
# Listing the index would double the time. A nested repository that is not a submodule is not
# inspected here, only before something is removed.
has_modules() { [ -e "$top/.gitmodules" ] || [ -d "$gitdir/modules" ]; }
private= ahead= behind=
case $source+$asked$2 in
  +*) ;;
  *behind* | *git-worktree)
    # In a subshell first, because a missing source ends it.
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
    """The progress of one work directory; None if git has no answer."""

    ahead: int | None = None
    behind: int | None = None
    dirty: int | None = None


def look(
    run: Runner,
    home: str,
    source: str,
    names: Sequence[str],
    records: Sequence[AgentRecord],
    upstream: str = "",
) -> list[Looked]:
    """Return an answer for the work directory of each record; all have the same source.

    If the source is not on that host, `upstream` is its current commit.
    """
    words = [word for r in records for word in (r.work_dir, r.transfer, r.base_commit)]
    given = [home, source, ",".join(names), upstream]
    done = run(["sh", "-c", LOOK, "mngr", *given, *words], timeout=600)
    answers = done.stdout.decode("utf-8", "replace").split("\0")[:-1]
    found = [_looked(each, "dirty" in names) for each in answers]
    return found + [Looked()] * (len(records) - len(found))


def _looked(answer: str, dirty: bool) -> Looked:
    distance, *changed = answer.splitlines()
    if distance == "!":
        return Looked()
    ahead, behind = map(_number, distance.split(" "))
    seen = len(set(changed)) if dirty and "!" not in changed else None
    return Looked(ahead=ahead, behind=behind, dirty=seen)


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def distances(repo: Repo, base: str, tips: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Return, by tip, the commits since `base` and the lines added and removed. Two processes."""
    listed = repo.git("rev-list", "--parents", *tips, f"^{base}", "--").decode("ascii")
    parents = {words[0]: words[1:] for words in map(str.split, listed.splitlines())}
    lines = "".join(f"{tip} {base}\n" for tip in tips).encode()
    shown = repo.git(
        *("diff-tree", "--stdin", "-r", "-M", "--shortstat", "--no-ext-diff", "--no-textconv"),
        input=lines,
    ).decode("ascii", "replace")
    changed = _shortstats(shown)
    return {tip: (_ancestors(tip, parents), *changed.get(tip, (0, 0))) for tip in tips}


def _ancestors(tip: str, parents: Mapping[str, Sequence[str]]) -> int:
    """Return how many of the commits in `parents` a tip reaches, including itself."""
    seen: set[str] = set()
    waiting = [tip]
    while waiting:
        commit = waiting.pop()
        if commit in parents and commit not in seen:
            seen.add(commit)
            waiting += parents[commit]
    return len(seen)


def _shortstats(shown: str) -> dict[str, tuple[int, int]]:
    """Return lines added and removed, by the commit on the line above."""
    found: dict[str, tuple[int, int]] = {}
    commit = ""
    for line in shown.splitlines():
        if line[:1] != " ":
            commit = line
            continue
        counts = {"insertion": 0, "deletion": 0}
        for part in line.split(","):
            number, word = part.split()[:2]
            counts[word.partition("(")[0].removesuffix("s")] = int(number)
        found[commit] = (counts["insertion"], counts["deletion"])
    return found
