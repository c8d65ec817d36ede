"""Read the fields of a JSON object, with a default if one is missing or of another type.

For events, and for what tests and agents wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from mngr.model.struct import Json

Event = Mapping[str, Json]


def loaded(data: bytes) -> Json:
    """Return the value, or None if the data is not JSON."""
    try:
        value: Json = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value


def as_table(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def tables_in(value: Json) -> list[dict[str, Json]]:
    return [as_table(each) for each in value] if isinstance(value, list) else []


def time_of(event: Event) -> float:
    return number_of(event, "time")


def text_of(event: Event, key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def number_of(event: Event, key: str) -> float:
    value = event.get(key)
    return float(value) if isinstance(value, (int, float)) and -1e12 < value < 1e12 else 0.0


def list_of(event: Event, key: str) -> list[Json]:
    value = event.get(key)
    return value if isinstance(value, list) else []


def table_of(event: Event, key: str) -> dict[str, Json]:
    return as_table(event.get(key))


def tables_of(event: Event, key: str) -> list[dict[str, Json]]:
    return tables_in(event.get(key))
