"""Find programs and modules that are missing on this machine, which no edit can fix."""

from __future__ import annotations

import os
import re
import shutil

from mngr_mechanic.program.reports import Result

# The messages of dash, bash, zsh, ksh and busybox.
NOT_FOUND = re.compile(
    r"^(?:.*?: )?(?:line )?(?:\d+: )?(?:command not found: (?P<zsh>[\w.+-]+)"
    r"|(?P<name>[\w.+-]+): (?:command )?not found(?: .*)?)$",
    re.MULTILINE,
)
NO_MODULE = re.compile(r"No module named '([\w.]+)'")


def missing_program(result: Result, root: str) -> str:
    """Return a program that a command of the test names and that is not installed."""
    for command in reversed(result.commands):
        if not command.exit_code:
            continue
        for found in NOT_FOUND.finditer(command.stderr):
            name = found.group("name") or found.group("zsh")
            named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", command.text)
            if named and shutil.which(name) is None and not _of_project(name, root):
                return name
    return ""


def missing_module(result: Result, root: str) -> str:
    """Return a module that is neither the project's nor installed."""
    message = result.failure.message if result.failure else ""
    said = "\n".join([message, *(command.stderr for command in result.commands)])
    found = NO_MODULE.search(said)
    name = found.group(1).partition(".")[0] if found else ""
    return "" if _of_project(name, root) else name


def _of_project(name: str, root: str) -> bool:
    """Return whether the project has a file or folder of this name."""
    places = [os.path.join(root, folder) for folder in ("", "src", "bin", "scripts")]
    entries = [entry for place in places if os.path.isdir(place) for entry in os.listdir(place)]
    return any(entry.partition(".")[0] == name for entry in entries)
