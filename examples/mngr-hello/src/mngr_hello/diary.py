"""A hook that records created and destroyed agents, one line each, in mngr's home."""

from __future__ import annotations

import json
import os

from mngr.model.struct import Json


def write(payload: dict[str, Json]) -> None:
    """Append the event to the file. mngr calls this after the event, in the same process.

    If it raises an exception, mngr prints one line on stderr.
    """
    path = os.path.join(str(payload["home"]), "diary.jsonl")
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(payload) + "\n")
