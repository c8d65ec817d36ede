"""The agent type: the program as one file, and the task beside it."""

from __future__ import annotations

import os

from mngr.api import AgentType, Launch
from mngr_mechanic import archive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.api import LaunchContext

PROMPT = "prompt.txt"


class MechanicAgent(AgentType):
    """Requires python3 and the project's own pytest, but no account and no network."""

    name = "mechanic"
    program = "python3"
    install = "install Python 3.9 or newer"

    def prepare(self, context: LaunchContext) -> Launch:
        launch = self.resume(context)
        prompt = os.fsencode(context.prompt)
        return launch.replace(
            files={**launch.files, PROMPT: (prompt, 0o600)}, took_prompt=bool(context.prompt)
        )

    def resume(self, context: LaunchContext) -> Launch:
        """Return a launch from the beginning, because only commits are kept."""
        program = os.path.join(context.state_dir, archive.NAME)
        prompt = os.path.join(context.state_dir, PROMPT)
        return Launch(
            argv=("python3", program, "--prompt-file", prompt, *context.record.argv),
            files={archive.NAME: (archive.build(), 0o600)},
        )
