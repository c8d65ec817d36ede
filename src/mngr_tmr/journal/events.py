"""Fields of an event, with a default where a journal has none or something else."""

from __future__ import annotations

from mngr.model.struct import Json
from mngr_tmr.journal.model import Event


def time_of(event: Event) -> float:
    time = event.get("time")
    return float(time) if isinstance(time, (int, float)) else 0.0


def text_of(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def number_of(event: Event, key: str) -> float:
    value = event.get(key)
    return float(value) if isinstance(value, (int, float)) else 0.0


def list_of(event: Event, key: str) -> list[Json]:
    value = event.get(key)
    return value if isinstance(value, list) else []


def table_of(event: Event, key: str) -> dict[str, Json]:
    value = event.get(key)
    return value if isinstance(value, dict) else {}
