"""Read a versioned file, `<stem>.<rev>.json`, anywhere on a host."""

from __future__ import annotations

from mngr.errors import Stale
from mngr.hosts import agent_files
from mngr.hosts.base import Host
from mngr.model.records import RECORD_LIMIT

# A swap may happen between the glob and the read; then the file is gone, and the script retries.
SCRIPT = (
    agent_files.FUNCTIONS
    + r"""
for attempt in 1 2 3 4 5 6 7 8 9; do
  find_newest "$1"
  [ "$best" -eq 0 ] && echo 0 && exit 0
  content=.
  if [ "$solid" -gt 0 ]; then
    content=$(head -c LIMIT "$1.$solid.json" 2>/dev/null && echo .) || continue
  fi
  printf '%s\n%s' "$best" "${content%.}"
  exit 0
done
exit 1
""".replace("LIMIT", str(RECORD_LIMIT + 1))
)


def current(host: Host, stem: str) -> tuple[int, bytes]:
    """Return the highest revision and the content of the highest regular file; 0 if none."""
    done = host.run(["sh", "-c", SCRIPT, "mngr", stem], timeout=30)
    if done.code:
        raise Stale(f"{stem} was changed by other commands", "try again")
    rev, _, content = done.stdout.partition(b"\n")
    return int(rev), content
