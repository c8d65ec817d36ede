"""Settings files that were parsed before, by their text: tomllib takes longer to import than Python
takes to start."""

from __future__ import annotations

import os

from mngr import files
from mngr.errors import UsageError
from mngr.model import jsontext
from mngr.model.struct import Json
from mngr.settings.file import parse_settings, read_text

KEPT = 8
"""Number of texts that are kept, of all projects."""


def parsed(path: str, home: str) -> dict[str, Json] | None:
    """Return the settings in a file as `read_settings` does, and keep them under `home`."""
    text = read_text(path)
    if text is None:
        return None
    index = os.path.join(home, "cache", "settings.json")
    known = _known(index)
    tree = known.get(text)
    if isinstance(tree, dict):
        return tree
    tree = parse_settings(text, path)
    if os.path.isdir(home):  # reading settings does not create it
        _keep(index, dict([*known.items(), (text, tree)][-KEPT:]))
    return tree


def _known(index: str) -> dict[str, Json]:
    """Return the trees by their text; without the index, a file is only parsed again."""
    try:
        known = jsontext.loads((read_text(index) or "{}").encode())
    except (UsageError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _keep(index: str, trees: dict[str, Json]) -> None:
    try:
        files.replace(index, jsontext.dumps(trees).encode())
    except OSError:
        pass  # a full disk
