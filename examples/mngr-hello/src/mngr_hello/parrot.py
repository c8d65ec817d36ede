"""An agent type whose program repeats each message, and reports when it waits for one."""

from __future__ import annotations

import os

from mngr.agents.base import AgentType, Launch, LaunchContext
from mngr.model.state import Evidence, Signals

# The signal is written by rename, so that a reader never sees a partial file.
SCRIPT = b"""\
signals=$MNGR_AGENT_STATE_DIR/signals launch=$1
shift
for word in "$@"; do printf 'Polly says: %s\\n' "$word"; done
mkdir -p "$signals"
printf '{"launch": "%s"}\\n' "$launch" > "$signals/.listening"
mv "$signals/.listening" "$signals/Listening.json"
while IFS= read -r line; do printf 'Polly says: %s\\n' "$line"; done
"""


class Parrot(AgentType):
    name = "parrot"

    def prepare(self, context: LaunchContext) -> Launch:
        """Return the command and its files; the first message is part of the command line."""
        first = (context.prompt,) if context.prompt else ()
        script = os.path.join(context.state_dir, "parrot.sh")
        return Launch(
            argv=("sh", script, context.record.launch, *first, *context.record.argv),
            files={"parrot.sh": (SCRIPT, 0o644)},
            took_prompt=bool(first),
        )

    def signals(self, evidence: Evidence) -> Signals:
        """Return WAITING once the program listens; ignore signals of earlier launches."""
        said, record = evidence.signals.get("Listening"), evidence.record
        if record is None or not isinstance(said, dict) or said.get("launch") != record.launch:
            return Signals()
        return Signals(waiting="something to repeat", since=record.launch_time)
