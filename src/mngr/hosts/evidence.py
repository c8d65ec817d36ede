"""Bytes from an agent's folder -> Evidence. Nothing an agent writes there can break a reading."""

from __future__ import annotations

from mngr.errors import BadRecord
from mngr.records import AgentRecord, Exit, Started, decode
from mngr.state import Evidence, Pane
from mngr.struct import Json, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeVar

    S = TypeVar("S", bound=Struct)


def read_evidence(
    agent_id: str, rev: int, record: bytes, files: Mapping[str, bytes], panes: tuple[Pane, ...]
) -> Evidence:
    """`files` maps started, exit, outcome.json, signals/<Event>.json, links to content."""
    parsed, problem = _record(agent_id, record)
    return Evidence(
        id=agent_id,
        rev=rev,
        record=parsed,
        problem=problem,
        started=_optional(Started, files.get("started")),
        exit=_optional(Exit, files.get("exit")),
        panes=panes,
        signals=_signals(files),
        tail=files.get("transcript", b""),
        status=files.get("status", b""),
        outcome=files.get("outcome.json", b""),
    )


def _record(agent_id: str, data: bytes) -> tuple[AgentRecord | None, str]:
    try:
        record = AgentRecord.from_json(decode(data))
    except BadRecord as error:
        return None, error.message
    return (record, "") if record.id == agent_id else (None, f"it belongs to {record.id}")


def _optional(kind: type[S], data: bytes | None) -> S | None:
    """A torn or foreign file counts as absent: the launcher writes by rename, so it is not ours."""
    try:
        return kind.from_json(decode(data)) if data else None
    except BadRecord:
        return None


def _signals(files: Mapping[str, bytes]) -> dict[str, Json]:
    signals: dict[str, Json] = {}
    for name, data in files.items():
        if name.startswith("signals/"):
            try:
                signals[name.removeprefix("signals/").removesuffix(".json")] = decode(data)  # type: ignore[assignment]
            except BadRecord:
                continue
    return signals
