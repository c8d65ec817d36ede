"""The directories and the environment of a test, which depend little on the caller's."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from mngr_e2e.commands.tree import MARK
from mngr_e2e.settings import PLACES, Settings

KEPT = ("USER", "LOGNAME", "TZ", "TMPDIR", MARK)


@dataclass(frozen=True)
class Directories:
    """The directories of a session: the project, and the test's own."""

    root: Path
    home: Path
    work: Path
    artifacts: Path

    def make(self) -> Directories:
        for folder in (self.home, self.work, self.artifacts):
            folder.mkdir(exist_ok=True)
        return self

    def filled(self, text: str) -> str:
        """Return the text with `{home}`, `{work}` and so on replaced by the directories."""
        for name in PLACES:
            text = text.replace(f"{{{name}}}", str(getattr(self, name)))
        return text


def environment(settings: Settings, place: Directories) -> dict[str, str]:
    """Return the variables of a test's commands."""
    kept = (*KEPT, *settings.pass_env)
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "HOME": str(place.home),
        "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "SHELL": settings.shell,
        "TERM": "xterm-256color",
        "ASCIINEMA_CONFIG_HOME": f"{place.home}.asciinema",  # it writes an id there
        # Without the prefix MNGR_, which would show a program that it is being tested.
        "E2E_ROOT": str(place.root),
        "E2E_CASTS": str(place.artifacts),
        **{name: place.filled(value) for name, value in settings.env.items()},
    }
