"""Edit a text in the user's editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from jot.errors import JotError


def edited(text: str) -> str:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="jot-") as directory:
        path = Path(directory) / "note.md"
        path.write_text(text + "\n", encoding="utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), str(path)], check=False)
        except FileNotFoundError:
            raise JotError(f"cannot find the editor {editor}; set EDITOR") from None
        if done.returncode:
            raise JotError(f"{editor} ended with status {done.returncode}; nothing was changed")
        return path.read_text(encoding="utf-8").strip()
