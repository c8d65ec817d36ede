"""Change a record: read, edit, compare-and-swap, and retry after a concurrent change."""

from __future__ import annotations

from mngr.errors import BadRecord, NotFound, Stale
from mngr.hosts.base import Host
from mngr.model.records import REVISION_DIGITS, AgentRecord, encode, record_stem
from mngr.model.state import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ATTEMPTS = 200
"""Fifty concurrent writers need at most fifty rounds each; more indicates a bug."""


def change(
    host: Host,
    agent_id: str,
    edit: Callable[[AgentRecord], AgentRecord],
    known: Evidence | None = None,
) -> AgentRecord:
    """Apply `edit` to the newest revision, perhaps several times, and return the new record.

    `known` saves the first reading if the caller has one; if it is outdated, the swap fails and the
    record is read again.
    """
    return changed(host, agent_id, edit, known)[0]


def changed(
    host: Host,
    agent_id: str,
    edit: Callable[[AgentRecord], AgentRecord],
    known: Evidence | None = None,
) -> tuple[AgentRecord, int]:
    """Apply `edit` to the newest revision; return the new record and its revision."""
    for _ in range(ATTEMPTS):
        evidence = known or next(iter(host.read([agent_id]).agents), None)
        known = None
        if evidence is None:
            raise NotFound(f"{agent_id} is gone", "see `mngr restore --list`")
        if evidence.record is None:
            raise BadRecord(
                f"{agent_id} has an unreadable record ({evidence.problem})", "see `mngr doctor`"
            )
        if evidence.rev + 1 >= 10**REVISION_DIGITS:  # a longer number would not be found again
            raise BadRecord(f"{agent_id} has a forged record", "see `mngr doctor`")
        edited = edit(evidence.record)
        if edited == evidence.record:
            return edited, evidence.rev
        if host.swap(record_stem(host.home, agent_id), evidence.rev, encode(edited)):
            return edited, evidence.rev + 1
    raise Stale(f"{agent_id} was changed by other commands", "try again")
