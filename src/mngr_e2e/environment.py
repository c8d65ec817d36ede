"""The environment of a test: little of ours, so that it does not matter who runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from mngr_e2e.commands.tree import MARK
from mngr_e2e.settings import Settings

KEPT = ("USER", "LOGNAME", "TZ", "TMPDIR", MARK)


def environment(
    settings: Settings, outside: Mapping[str, str], places: Mapping[str, str]
) -> dict[str, str]:
    kept = {name: outside[name] for name in (*KEPT, *settings.pass_env) if name in outside}
    env = {
        **kept,
        "HOME": places["home"],
        "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{outside.get('PATH', os.defpath)}",
        "SHELL": settings.shell,
        "TERM": "xterm-256color",
        "ASCIINEMA_CONFIG_HOME": f"{places['home']}.asciinema",  # it writes an id there
        # Without the prefix of mngr: a program must not tell that it is judged by that.
        "E2E_ROOT": places["root"],
        "E2E_CASTS": places["artifacts"],
    }
    for name, value in settings.env.items():
        env[name] = filled(value, places)
    return env


def filled(value: str, places: Mapping[str, str]) -> str:
    """The text with every `{home}` and the like replaced by its place."""
    for name, place in places.items():
        value = value.replace(f"{{{name}}}", place)
    return value
