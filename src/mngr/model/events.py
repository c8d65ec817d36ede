"""Append-only JSONL: one object per line, always event_id, timestamp, source and type."""

from __future__ import annotations

import os
import time

from mngr.model import jsontext
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOURCE = "mngr"


def new_id(prefix: str) -> str:
    """Return `agent-<32 hex>`, `evt-<32 hex>`: 128 random bits, without importing uuid."""
    return f"{prefix}-{os.urandom(16).hex()}"


def iso(seconds: float) -> str:
    """Return UTC with microseconds, sortable as text."""
    whole = int(seconds)
    micro = int((seconds - whole) * 1e6)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole)) + f".{micro:06d}Z"


def epoch(iso: str) -> float | None:
    """Parse an ISO 8601 date or time; without an offset it is UTC. None for any other text."""
    import datetime  # takes 1 ms

    try:
        moment = datetime.datetime.fromisoformat(iso)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def event(type: str, source: str = SOURCE, **fields: Json) -> dict[str, Json]:
    """Return a new event, with the current time."""
    stamp = iso(time.time())
    return {"event_id": new_id("evt"), "timestamp": stamp, "source": source, "type": type, **fields}


def line(event: dict[str, Json]) -> str:
    return jsontext.dumps(event, ascii=False, compact=True)


def of_agent(type: str, id: str, name: str, **fields: str) -> str:
    """Return the line of a new event of an agent."""
    return line(event(type, agent_id=id, agent_name=name, **fields))


def parse(lines: Iterable[bytes]) -> Iterator[dict[str, Json]]:
    """Yield every complete event; skip torn or foreign lines."""
    for raw in lines:
        try:
            value = jsontext.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and "event_id" in value and "type" in value:
            yield value
