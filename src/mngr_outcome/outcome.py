"""What an agent says it did: `outcome.json`, its last act.

The file is written by the agent, so nothing in it is believed: every type is exact, every text
has a limit, and what could steer a terminal or a command line is removed or refused.
"""

from __future__ import annotations

import json

from mngr.errors import BadRecord
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.model.struct import Json

FILE = "outcome.json"
SCHEMA = 1
BYTES_LIMIT = 64 * 1024
TEXT_LIMIT = 32_000
SHORT_LIMIT = 8_000
NAME_LIMIT = 2_000
ITEMS_LIMIT = 200
ATTEMPTS = ("fix", "improve", "none")
HEX = frozenset("0123456789abcdef")
# Controls but tab and newline, halves of characters, and marks that turn the direction of text.
DROPPED = dict.fromkeys(
    (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),
    )
)


class Blocked(Struct):
    """Why the agent could not go on, and what it would need."""

    reason: str
    needs: str = ""


class Confusing(Struct):
    """A command that did not do what the agent thought it would."""

    command: str
    tried: str
    happened: str


class Outcome(Struct):
    """One agent's last word."""

    task: str
    try_number: int
    """`try` in the file, which Python keeps for itself."""
    attempted: str
    """fix, improve or none."""
    head: str
    """The commit that holds its work."""
    summary: str
    blocked: Blocked | None = None
    tests_added: tuple[str, ...] = ()
    confusing: tuple[Confusing, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """As it stands in the file."""
        plain = super().to_json()
        number = plain.pop("try_number")
        return {"schema": SCHEMA, "task": plain.pop("task"), "try": number, **plain}


def parse_outcome(data: bytes) -> Outcome:
    """The outcome in the bytes of a file, or a BadRecord that says what is wrong with it."""
    if len(data) > BYTES_LIMIT:
        raise BadRecord(f"the outcome is larger than {BYTES_LIMIT} bytes")
    given = _loaded(data)
    if given.get("schema") != SCHEMA or type(given["schema"]) is not int:
        raise BadRecord(f"the outcome's schema is not {SCHEMA}")
    return Outcome(
        task=_name(given, "task"),
        try_number=_number(given, "try"),
        attempted=_attempted(given),
        head=_head(given),
        summary=_text(given, "summary", TEXT_LIMIT),
        blocked=_blocked(given.get("blocked")),
        tests_added=tuple(_node_id(each) for each in _items(given, "tests_added")),
        confusing=tuple(_confusing(each) for each in _items(given, "confusing")),
    )


def cleaned(text: str, limit: int = TEXT_LIMIT) -> str:
    """Free text that may be printed and stored: nothing that steers a terminal, not too long."""
    kept = text.translate(DROPPED)
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def _loaded(data: bytes) -> dict[str, object]:
    try:
        value = json.loads(
            data.decode("utf-8", "replace"),
            object_pairs_hook=_without_repeats,
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"the outcome is not JSON: {str(error)[:200]}") from None
    return _object(value, "the outcome")


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Which of two values is meant differs between readers, so neither is."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number")


def _object(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadRecord(f"{what} is not an object")
    return value


def _required(given: dict[str, object], key: str, kind: type) -> object:
    if key not in given:
        raise BadRecord(f"the outcome has no {key!r}")
    if type(given[key]) is not kind:
        raise BadRecord(
            f"{key!r} of the outcome is {type(given[key]).__name__}, not {kind.__name__}"
        )
    return given[key]


def _text(given: dict[str, object], key: str, limit: int) -> str:
    value = _required(given, key, str)
    assert isinstance(value, str)
    return cleaned(value, limit)


def _number(given: dict[str, object], key: str) -> int:
    value = _required(given, key, int)
    assert isinstance(value, int)
    if not 0 <= value < 1_000_000:
        raise BadRecord(f"{key!r} of the outcome is out of range")
    return value


def _name(given: dict[str, object], key: str) -> str:
    value = _required(given, key, str)
    assert isinstance(value, str)
    return _plain(value, f"{key!r} of the outcome")


def _plain(value: str, what: str) -> str:
    """One line that is used as a name: it is refused rather than changed."""
    if len(value) > NAME_LIMIT:
        raise BadRecord(f"{what} is longer than {NAME_LIMIT} characters")
    if value != value.translate(DROPPED) or "\n" in value or "\t" in value:
        raise BadRecord(f"{what} contains control characters")
    return value


def _attempted(given: dict[str, object]) -> str:
    value = _name(given, "attempted")
    if value not in ATTEMPTS:
        raise BadRecord(
            f"'attempted' of the outcome is {value[:40]!r}, not {' or '.join(ATTEMPTS)}"
        )
    return value


def _head(given: dict[str, object]) -> str:
    value = _name(given, "head")
    if len(value) not in (40, 64) or not HEX.issuperset(value):
        raise BadRecord("'head' of the outcome is not a commit's full name")
    return value


def _blocked(value: object) -> Blocked | None:
    if value is None:
        return None
    given = _object(value, "'blocked' of the outcome")
    reason, needs = (_text(given, key, SHORT_LIMIT) for key in ("reason", "needs"))
    return Blocked(reason=reason, needs=needs)


def _confusing(value: object) -> Confusing:
    given = _object(value, "an entry of 'confusing'")
    command, tried, happened = (
        _text(given, key, SHORT_LIMIT) for key in ("command", "tried", "happened")
    )
    return Confusing(command=command, tried=tried, happened=happened)


def _items(given: dict[str, object], key: str) -> list[object]:
    value = given.get(key, [])
    if not isinstance(value, list):
        raise BadRecord(f"{key!r} of the outcome is not a list")
    if len(value) > ITEMS_LIMIT:
        raise BadRecord(f"{key!r} of the outcome has more than {ITEMS_LIMIT} entries")
    return value


def _node_id(value: object) -> str:
    """It will stand on a command line and name a file of the project."""
    if not isinstance(value, str) or not value:
        raise BadRecord("an entry of 'tests_added' is not a node id")
    _plain(value, "an entry of 'tests_added'")
    path = value.partition("::")[0]
    if value.startswith(("-", "@")) or path.startswith(("/", "~")) or ".." in path.split("/"):
        raise BadRecord(f"{value[:80]!r} in 'tests_added' is not in the project")
    return value
