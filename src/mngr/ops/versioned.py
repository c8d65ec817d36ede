"""Read a versioned file, `<stem>.<rev>.json`, anywhere on a host."""

from __future__ import annotations

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
  echo "$best"
  [ "$best" -eq 0 ] && exit 0
  cat "$1.$best.json" 2>/dev/null && exit 0
done
"""


def current(host: Host, stem: str) -> tuple[int, bytes]:
    """The highest revision and its content; 0 where there is none."""
    done = host.run(["sh", "-c", SCRIPT, "mngr", stem], timeout=30)
    lines = done.stdout.split(b"\n")
    while len(lines) > 1 and lines[1].isdigit():
        lines.pop(0)
    return int(lines[0] or 0), b"\n".join(lines[1:])
