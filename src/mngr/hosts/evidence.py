"""Parse the files of an agent's folder into Evidence; no content can break a reading."""

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
"""At most this many revisions of a record are read, and as many signals."""


CHANGEABLE = (
    *("name", "labels", "launch", "launch_time", "launches", "worker", "stop", "removal"),
    *("archived", "timeout", "max_cost", "max_tokens"),
)
"""The fields of a record that commands change. The other fields are not read from the record of an
agent in a sandbox, which could change them: for example the repository in which git runs."""


def read_evidence(
    agent_id: str,
    rev: int,
    record: tuple[AgentRecord | None, str],
    files: Mapping[str, bytes],
    panes: tuple[Pane, ...],
) -> Evidence:
    """Return the evidence; `files` maps started, exit, outcome.json and signals to content."""
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


def first_record(
    agent_id: str, contents: Iterable[bytes], made: bytes = b""
) -> tuple[AgentRecord | None, str]:
    """Return the first content that is a record of this agent, or why the first one is not.

    A writer removes older revisions once a newer one is complete. So an invalid file with a higher
    revision than a valid record was put there by the agent. For an agent in a sandbox, `made` is
    the record that it was created with.
    """
    problem = ""
    for data in contents:
        try:
            record = AgentRecord.from_json(decode(data))
            if made and record.id == agent_id:
                now = {name: getattr(record, name) for name in CHANGEABLE}
                return AgentRecord.from_json(decode(made)).updated(now), ""
        except BadRecord as error:
            problem = problem or error.message
            continue
        if record.id == agent_id:
            return record, ""
        problem = problem or f"it belongs to {record.id}"
    return None, problem or "not a regular file"


def _optional(kind: type[R], data: bytes | None) -> R | None:
    """Return the parsed file; None if it is invalid, because the launcher writes by rename."""
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
