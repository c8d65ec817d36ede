"""Wait for changes of agents: poll this machine often; other hosts report their changes."""

from __future__ import annotations

import threading
import time

from mngr.errors import MngrError
from mngr.ops.work import transport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mngr.hosts.base import Host

SILENCE = 5.0
"""Seconds until a host that did not answer is asked again."""

# Prints a number that stands for all that the agents' files and panes say: as soon as it is another
# than $3, or after two seconds, for some states are a matter of time. A file that is replaced has
# another inode.
CHANGED = r"""
home=$1 socket=$2 mark=$3 tries=0; shift 3
cd "$home/agents" 2>/dev/null || { sleep 1; exit 0; }
look() {
  [ $# -gt 0 ] || set -- agent-*
  ls -liLn "$@"
  for each; do ls -lin "$each/signals"; done
  [ ! -S "$socket" ] || tmux -S "$socket" list-panes -a -F '#{pane_id} #{pane_dead}'
}
while now=$(look "$@" 2>/dev/null | cksum) && [ "$now" = "$mark" ] && [ "$tries" -lt 8 ]; do
  sleep 0.25
  tries=$((tries + 1))
done
echo "$now"
"""


class Rest:
    """Decides which hosts to read again: this machine after each `tick`, others on report."""

    def __init__(self, hosts: Sequence[Host], ids: Sequence[str] | None, tick: float) -> None:
        self._here = [host for host in hosts if transport.is_here(host)]
        self._away = [host for host in hosts if host not in self._here]
        self._ids, self._tick = ids or (), tick
        self._due: list[Host] = []
        self._news = threading.Event()
        self._watched = False

    def wait(self, longest: float | None = None) -> list[Host]:
        """Wait until there may be a change; return the hosts that may have one."""
        if not self._watched:
            self._watched = True
            for host in self._away:
                # A daemon thread ends with the command, and its remote call ends soon after.
                threading.Thread(target=self._watch, args=(host,), daemon=True).start()
        patience = self._tick if self._here else SILENCE
        self._news.wait(patience if longest is None else min(patience, longest))
        self._news.clear()
        due, self._due = self._due, []
        return [*self._here, *due]

    def _watch(self, host: Host) -> None:
        mark = ""
        while True:
            try:
                words = (host.home, host.socket, mark, *self._ids)
                done = host.run(["sh", "-c", CHANGED, "mngr", *words], timeout=30)
                mark = done.stdout.decode("utf-8", "replace").strip()
            except MngrError:
                time.sleep(SILENCE)
            self._due = [*self._due, host]
            self._news.set()
