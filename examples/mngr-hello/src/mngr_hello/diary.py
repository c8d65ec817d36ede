"""A hook: notes who came and who went, one line each, in mngr's home."""

from __future__ import annotations

import json
import os

from mngr.model.struct import Json


def write(payload: dict[str, Json]) -> None:
    """Called after the fact, in the process that acted. What it raises is one line on stderr."""
    path = os.path.join(str(payload["home"]), "diary.jsonl")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(payload) + "\n")
