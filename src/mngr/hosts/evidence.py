"""Bytes from an agent's folder -> Evidence. Nothing an agent writes there can break a reading."""

from __future__ import annotations

from mngr.errors import BadRecord
from mngr.model.records import AgentRecord, Exit, Started, decode
from mngr.model.state import FAR, Evidence, Pane
from mngr.model.struct import Json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeVar

    R = TypeVar("R", Started, Exit)

CANDIDATES = 50
"""So many revisions of a record are looked at, and as many signals."""


def read_evidence(
    agent_id: str,
    rev: int,
    record: tuple[AgentRecord | None, str],
    files: Mapping[str, bytes],
    panes: tuple[Pane, ...],
) -> Evidence:
    """`files` maps started, exit, outcome.json, signals/<Event>.json, links to content."""
    return Evidence(
        id=agent_id,
        rev=rev,
        record=record[0],
        problem=record[1],
        started=_optional(Started, files.get("started")),
        exit=_optional(Exit, files.get("exit")),
        panes=panes,
        signals=_signals(files),
        tail=files.get("transcript", b""),
        status=files.get("status", b""),
        outcome=files.get("outcome.json", b""),
    )


def first_record(agent_id: str, contents: Iterable[bytes]) -> tuple[AgentRecord | None, str]:
    """The first that is a record of this agent, or why the first one is not.

    A writer removes older revisions once a newer one is whole. So what is newer than a good record
    and is none was put there by the agent.
    """
    problem = ""
    for data in contents:
        try:
            record = AgentRecord.from_json(decode(data))
        except BadRecord as error:
            problem = problem or error.message
            continue
        if record.id == agent_id:
            return record, ""
        problem = problem or f"it belongs to {record.id}"
    return None, problem or "not a regular file"


def _optional(kind: type[R], data: bytes | None) -> R | None:
    """A torn or foreign file counts as absent: the launcher writes by rename, so it is not ours."""
    try:
        told = kind.from_json(decode(data)) if data else None
    except BadRecord:
        return None
    return told if told and 0 <= told.time < FAR else None


def _signals(files: Mapping[str, bytes]) -> dict[str, Json]:
    signals: dict[str, Json] = {}
    for name, data in files.items():
        if name.startswith("signals/"):
            try:
                signals[name.removeprefix("signals/").removesuffix(".json")] = decode(data)  # type: ignore[assignment]
            except BadRecord:
                continue
    return signals
