"""The hook that programs call on their events; it writes its input to signals/EVENT.json.

A program that the agent starts may share the agent's configuration, including the hooks. So the
hook counts the processes between itself and the launcher, and does nothing if there are too many.
"""

from __future__ import annotations

import json

from mngr.agents.jsonl import table
from mngr.model.quoting import quote
from mngr.model.state import Evidence
from mngr.model.struct import Json

# Arguments: the event. Standard input: JSON of the program. Always succeeds and prints nothing: a
# program may take either for an answer.
HOOK = r"""#!/bin/sh
dir={dir}
exec > /dev/null 2>&1
trap 'cat; exit 0' EXIT
IFS= read -r started < "$dir/started" || exit 0
launch=${{started#*\"launch\":\"}} launch=${{launch%%\"*}}
launcher=${{started#*\"pid\":}} launcher=${{launcher%%,*}}
# In a sandbox, which has its own process ids, the first process counts as the launcher.
[ ! -d "$dir/sandbox" ] || launcher=1
parent_of() {{
  if [ -r "/proc/$1/stat" ]; then
    IFS= read -r parent < "/proc/$1/stat" || return 1
    parent=${{parent##*) }} parent=${{parent#* }} parent=${{parent%% *}}
  else
    parent=$(ps -o ppid= -p "$1" | tr -d ' ')
  fi
}}
pid=$$ hops=0
while [ "$pid" != "$launcher" ]; do
  hops=$((hops + 1))
  [ "$hops" -le {hops} ] && [ "${{pid:-0}}" -gt 1 ] && parent_of "$pid" || exit 0
  pid=$parent
done
input=$(head -c {limit})
case $input in '{{'*) ;; *) input='{{}}' ;; esac
time=$(date +%s.%N); case $time in *N) time=${{time%.*}} ;; esac
mkdir -p "$dir/signals"
beside="$dir/signals/.$1.$$"
printf '{{"launch":"%s","time":%s,"input":%s}}\n' "$launch" "$time" "$input" > "$beside"
mv -f "$beside" "$dir/signals/$1.json"
{more}
exit 0
"""

LIMIT = 512 * 1024
"""A reading ignores signals over 1 MiB."""


def note(launch: str, event: str, **input: Json) -> dict[str, tuple[bytes, int]]:
    """Return a file of a launch: a signal that is written by mngr itself."""
    said = {"launch": launch, "time": 0.0, "input": input}
    return {f"signals/{event}.json": (json.dumps(said).encode(), 0o600)}


def noted(evidence: Evidence | None, event: str) -> dict[str, Json]:
    """Return the input of a signal, from any launch."""
    return table(table(evidence.signals.get(event)).get("input")) if evidence else {}


def script(state_dir: str, *, hops: int, more: str = "") -> bytes:
    """Return the hook; at most `hops` processes may be between it and the launcher.

    `more` are shell lines that run after the signal is written; $1 is the event, $input its JSON.
    """
    text = HOOK.format(dir=quote(state_dir), hops=hops, limit=LIMIT, more=more)
    return text.encode("utf-8", "surrogateescape")
