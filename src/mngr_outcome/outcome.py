"""`outcome.json`, in which an agent reports its result.

The agent writes the file, so it is not trusted: every type is exact, every text has a limit, and
characters that control a terminal or a command line are removed or refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from mngr.errors import BadRecord
from mngr.model.struct import Json
from mngr_outcome import codec

FILE = "outcome.json"
BYTES_LIMIT = 64 * 1024
TEXT_LIMIT = 32_000
SHORT_LIMIT = 8_000
NAME_LIMIT = 2_000
ITEMS_LIMIT = 200
ATTEMPTS = ("fix", "improve", "none")
HEX = frozenset("0123456789abcdef")
# Control characters except tab and newline, surrogates, and marks of the direction of text.
DROPPED = dict.fromkeys(
    (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),
    )
)


class Obstacle(StrEnum):
    """What blocks an agent."""

    MISSING = "missing"
    """A program, an account or a decision is missing."""
    NO_FIX = "no fix"
    """Nothing is missing; the agent found no fix."""


@dataclass(frozen=True)
class Blocked:
    """Why the agent could not continue, and what it requires."""

    reason: str
    needs: str
    obstacle: Obstacle = Obstacle.MISSING


@dataclass(frozen=True)
class Confusing:
    """A command that did not do what the agent expected."""

    command: str
    tried: str
    happened: str


@dataclass(frozen=True)
class Published:
    """The result of an agent, as it published it."""

    task: str
    try_number: int = field(metadata={codec.KEY: "try"})
    attempted: str
    """fix, improve or none."""
    head: str
    """The commit with its work."""
    summary: str
    blocked: Blocked | None = None
    tests_added: tuple[str, ...] = ()
    confusing: tuple[Confusing, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Return the content of the file."""
        told = codec.to_json(self)
        assert isinstance(told, dict)
        return {"schema": codec.SCHEMA, **told}


def parse_outcome(data: bytes) -> Published:
    """Return the outcome in a file; raise a BadRecord that names what is wrong with it."""
    given = codec.loaded(data, BYTES_LIMIT, "the outcome is")
    told = codec.from_json(Published, given)
    if not 0 <= told.try_number < 1_000_000:
        raise BadRecord("'try' is out of range")
    if told.attempted not in ATTEMPTS:
        raise BadRecord(f"'attempted' is {told.attempted[:40]!r}, not {' or '.join(ATTEMPTS)}")
    if len(told.head) not in (40, 64) or not HEX.issuperset(told.head):
        raise BadRecord("'head' is not a commit's full name")
    for key, items in (("tests_added", told.tests_added), ("confusing", told.confusing)):
        if len(items) > ITEMS_LIMIT:
            raise BadRecord(f"{key!r} has more than {ITEMS_LIMIT} entries")
    blocked = told.blocked
    if blocked is not None:
        blocked = replace(blocked, reason=_short(blocked.reason), needs=_short(blocked.needs))
    return replace(
        told,
        task=_name(told.task, "'task'"),
        summary=cleaned(told.summary),
        blocked=blocked,
        tests_added=tuple(_node_id(each) for each in told.tests_added),
        confusing=tuple(Confusing(*map(_short, vars(each).values())) for each in told.confusing),
    )


def cleaned(text: str, limit: int = TEXT_LIMIT) -> str:
    """Return text without characters that control a terminal, cut to `limit`."""
    kept = text.translate(DROPPED)
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _short(text: str) -> str:
    return cleaned(text, SHORT_LIMIT)


def _name(value: str, what: str) -> str:
    """Return a one-line name; a bad one is refused, not changed."""
    if len(value) > NAME_LIMIT:
        raise BadRecord(f"{what} is longer than {NAME_LIMIT} characters")
    if value != value.translate(DROPPED) or "\n" in value or "\t" in value:
        raise BadRecord(f"{what} contains control characters")
    return value


def _node_id(value: str) -> str:
    """Return a node id, which is used on a command line and names a file of the project."""
    if not value:
        raise BadRecord("an entry of 'tests_added' is not a node id")
    _name(value, "an entry of 'tests_added'")
    path = value.partition("::")[0]
    if value.startswith(("-", "@")) or path.startswith(("/", "~")) or ".." in path.split("/"):
        raise BadRecord(f"{value[:80]!r} in 'tests_added' is not in the project")
    return value
