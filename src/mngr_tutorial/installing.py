"""`mngr tutorial install-commands`: write the instructions of `sync` as a slash command."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from mngr_tutorial import prompts
from mngr_tutorial.project import Project

FOLDER = Path(".claude") / "commands"
HEAD = """\
---
description: Write the missing end-to-end tests of the tutorial
---

"""
FIRST = """\
Find out what is missing: `mngr tutorial check --no-results` names every block without a test and
every test whose block is not in the tutorial. $ARGUMENTS"""
_MARK = re.compile(r"\n<!-- mngr tutorial install-commands, version \d+, ([0-9a-f]{64}) -->\n")


def text(project: Project, *, user: bool) -> str:
    """Return the text of the file. Its last line lets a later install detect edits."""
    tests = "the project's directory of end-to-end tests" if user else prompts.test_places(project)
    tutorial = "tutorial.sh" if user else project.named(project.tutorial)
    body = f"{HEAD}{prompts.sync_instructions(tutorial, tests, FIRST)}\n"
    version = prompts.load(prompts.SYNC).version
    return f"{body}\n<!-- mngr tutorial install-commands, version {version}, {_digest(body)} -->\n"


def place(project: Project, *, user: bool) -> Path:
    base = Path(os.path.expanduser("~")) if user else project.root
    return base / FOLDER / f"{prompts.SYNC}.md"


def state(path: Path, wanted: str) -> str:
    """Return absent, current, outdated (an earlier version of mngr) or changed (edited)."""
    try:
        found = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "changed" if path.is_symlink() else "absent"
    except UnicodeDecodeError:
        return "changed"
    if found == wanted:
        return "current"
    return "outdated" if is_ours(found) else "changed"


def is_ours(found: str) -> bool:
    """Return whether the text is unchanged since some version of mngr wrote it."""
    mark = _MARK.search(found)
    if mark is None or mark.end() < len(found):
        return False
    return mark[1] == _digest(found[: mark.start()])


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
