"""The watcher that keeps an agent within its limits, on the agent's own host, in POSIX sh.

The launcher starts it, or `limit` does if there was no limit before. It reads the limits again each
second, which costs one fork, and meters the conversation only when that has changed.
"""

from __future__ import annotations

import os

from mngr.hosts import tmux_scripts
from mngr.model.durations import exactly
from mngr.model.quoting import quote
from mngr.model.records import AgentRecord, agent_dir
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.agents.base import AgentType
    from mngr.hosts.base import Files, Host
    from mngr.ops.world import World


class Limits(Struct):
    """Seconds, dollars and tokens; None means no limit."""

    timeout: float | None = None
    max_cost: float | None = None
    max_tokens: int | None = None

    @classmethod
    def of(cls, record: AgentRecord) -> Limits:
        return cls(timeout=record.timeout, max_cost=record.max_cost, max_tokens=record.max_tokens)

    def __bool__(self) -> bool:
        return self != Limits()

    @property
    def metered(self) -> bool:
        return self.max_cost is not None or self.max_tokens is not None

    def __str__(self) -> str:
        said = []
        if self.timeout is not None:
            said.append(exactly(self.timeout))
        if self.max_cost is not None:
            said.append(f"${self.max_cost:g}")
        if self.max_tokens is not None:
            said.append(f"{self.max_tokens} tokens")
        return ", ".join(said) or "no limits"

    def lines(self) -> str:
        """Return the lines that the watcher reads: limits in whole seconds, and their names."""
        lines = []
        if self.timeout is not None:
            import math

            lines.append(f"timeout {max(1, math.ceil(self.timeout))} {self.timeout:g}")
        if self.max_cost is not None:
            lines.append(f"max_cost {self.max_cost:.9g}")
        if self.max_tokens is not None:
            lines.append(f"max_tokens {self.max_tokens}")
        return "".join(f"{line}\n" for line in lines)


# Arguments: the pid of the launcher, and optionally a reason to end the agent at once.
SCRIPT = (
    r"""#!/bin/sh
# Ends the agent's program when it exceeds a limit; the launcher then records the reason.
LC_ALL=C; export LC_ALL
set -C # the agent may put a link where a file is written
cd @dir@ || exit 1
launch=@launch@ launcher=$1 leaders=$1 spared=$1 ttys= patterns=@patterns@
"""
    + tmux_scripts.PROCESSES
    + r"""
meter() {
:
@meter@
}
end_with() {
  rm -f ".over.$$"; printf '"%s"\n' "$1" > ".over.$$" && mv -f ".over.$$" "over.$launch"
  # The launcher keeps running, because it records the reason.
  signal_and_wait TERM 1 || signal_and_wait HUP @grace@ || signal_and_wait KILL 2
  exit 0
}
[ $# -lt 2 ] || end_with "$2"

read_limits() {
  timeout= timeout_said= max_tokens= max_cost=
  while read -r key value said; do
    case $key in
      timeout) timeout=$value timeout_said=$said ;;
      max_tokens) max_tokens=$value ;;
      max_cost) max_cost=$value ;;
    esac
  done < limits
}
changed() {
  for each in @files@; do
    [ ! "$each" -nt metered ] || return 0
  done
  return 1
}
# A model without a price counts as the most expensive of its vendor, so that the limit holds.
excess() {
  { cd .. && meter @name@ < /dev/null; } | awk -v max_tokens="$max_tokens" -v max_cost="$max_cost" '
    FILENAME == "prices" {
      prefix[++count] = $1
      for (kind = 2; kind <= 5; kind++) {
        price[count, kind] = $kind
        if ($kind + 0 > dearest["", kind]) dearest["", kind] = $kind + 0
        if ($kind + 0 > dearest[vendor($1), kind]) dearest[vendor($1), kind] = $kind + 0
      }
      next
    }
    function vendor(name) {
      match(name, /^[A-Za-z]*/)
      name = substr(name, 1, RLENGTH)
      return name ~ /^(o|chatgpt|codex)$/ ? "gpt" : name
    }
    function fitting(name, each, best) {
      best = 0
      for (each = 1; each <= count; each++)
        if (index(name, prefix[each]) == 1 &&
            (!best || length(prefix[each]) > length(prefix[best]))) best = each
      return best
    }
    NF >= 6 {
      name = $2
      which = fitting(name)
      if (!which) { sub(/^.*\//, "", name); sub(/^.*anthropic\./, "", name); which = fitting(name) }
      sold = vendor(name)
      if (!((sold, 2) in dearest)) sold = ""
      for (kind = 2; kind <= 5; kind++) {
        tokens += $(kind + 1)
        cost += $(kind + 1) * (which ? price[which, kind] : dearest[sold, kind]) / 1000000
      }
    }
    END {
      if (max_tokens != "" && tokens > max_tokens + 0)
        printf "over its limit of %s tokens (%.0f used)\n", max_tokens, tokens
      else if (max_cost != "" && cost > max_cost + 0)
        printf "over its limit of $%s ($%.4g used)\n", max_cost, cost
    }' prices -
}

rm -f ".watcher.$$"
printf '%s\n' "$launch $$" > ".watcher.$$" && mv -f ".watcher.$$" watcher
now=$(date +%s) ticks=0 again=1 line=
[ ! -f started ] || IFS= read -r line < started
line=${line#*\"time\":} started=${line%%[!0-9]*}
started=${started:-$now}
while sleep 1; do
  kill -0 "$launcher" 2> /dev/null || exit 0
  # The agent can replace these files, and a named pipe would block this shell.
  [ -f watcher ] && [ -f limits ] && [ -f prices ] || exit 0
  read -r current < watcher && [ "$current" = "$launch $$" ] || exit 0
  read_limits
  [ -n "$timeout$max_tokens$max_cost" ] || exit 0
  ticks=$((ticks + 1)) now=$((now + 1))
  [ $((ticks % 15)) -ne 0 ] || now=$(date +%s)
  # The start time is cut to whole seconds, so one more second has to pass.
  if [ -n "$timeout" ] && [ $((now - started)) -gt "$timeout" ]; then
    end_with "timed out after $timeout_said s"
  fi
  [ -n "$max_tokens$max_cost" ] || continue
  # Some shells compare only whole seconds, so check again after a change.
  if changed; then look=1 again=1; else look=$again again=0; fi
  [ "$look" = 1 ] || continue
  # Not without the subshell: some shells exit if `:` cannot write, as on a full disk.
  rm -f ".metered.$$"; (: > ".metered.$$") 2> /dev/null && mv -f ".metered.$$" metered
  cause=$(excess)
  [ -z "$cause" ] || end_with "$cause"
done
"""
)

# The parts of the launcher's script that start the watcher and report its reason.
START = """sh {path} $$ < /dev/null > /dev/null 2>&1 &
"""

REPORT = r"""if [ -f "$dir/over.$launch" ]; then
  IFS= read -r cause < "$dir/over.$launch"
  rm -f "$dir/over.$launch"
  ended 124 "$cause"
fi"""


def path(home: str, agent_id: str) -> str:
    """Return the path of the script, which a shell outside the agent's sandbox runs."""
    return os.path.join(home, "limits", agent_id)


def files(world: World, host: Host, record: AgentRecord) -> Files:
    """Return the script and the files it reads; nothing if there are no limits."""
    from mngr.ops.limits.prices import Prices

    folder = agent_dir(host.home, record.id)
    limits = Limits.of(record)
    grace = max(1, round(world.config.seconds("stop.grace")))
    text = script(folder, record, world.known_type(record.type), grace)
    return {
        os.path.join(folder, "prices"): (Prices(world.config).lines().encode(), 0o600),
        path(host.home, record.id): (os.fsencode(text), 0o700),
        os.path.join(folder, "limits"): (limits.lines().encode(), 0o600),
    }


def script(folder: str, record: AgentRecord, kind: AgentType, grace: int) -> str:
    parts = {
        "@dir@": quote(folder),
        "@launch@": quote(record.launch),
        "@patterns@": quote(tmux_scripts.patterns([record.id])),
        "@grace@": str(grace),
        "@files@": " ".join(kind.conversation) or "/nowhere",
        "@name@": quote(os.path.basename(folder)),
        "@meter@": kind.meter(),
    }
    text = SCRIPT
    for mark, value in parts.items():
        text = text.replace(mark, value)
    return text
