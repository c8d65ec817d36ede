"""Read a versioned file, `<stem>.<rev>.json`, anywhere on a host."""

from __future__ import annotations

from mngr.errors import Stale

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.hosts.base import Host

# The glob and the cat may straddle a swap: then the file is gone and we look again.
SCRIPT = r"""
for attempt in 1 2 3 4 5 6 7 8 9; do
  best=0
  for file in "$1".*.json; do
    rev=${file#"$1".}; rev=${rev%.json}
    case $rev in *[!0-9]*|'') continue ;; esac
    [ "$rev" -le "$best" ] || best=$rev
  done
  [ "$best" -eq 0 ] && echo 0 && exit 0
  content=$(cat "$1.$best.json" 2>/dev/null && echo .) || continue
  printf '%s\n%s' "$best" "${content%.}"
  exit 0
done
exit 1
"""


def current(host: Host, stem: str) -> tuple[int, bytes]:
    """The highest revision and its content; 0 where there is none."""
    done = host.run(["sh", "-c", SCRIPT, "mngr", stem], timeout=30)
    if done.code:
        raise Stale(f"{stem} kept changing under us", "try again")
    rev, _, content = done.stdout.partition(b"\n")
    return int(rev), content
