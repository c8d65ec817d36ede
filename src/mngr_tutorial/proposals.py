"""What an agent proposes for `fill`: a JSON file of its own, in which nothing is believed."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mngr.errors import BadRecord
from mngr_e2e import blocks
from mngr_e2e.artifacts import dedented
from mngr_e2e.blocks import Block
from mngr_outcome.outcome import DROPPED, Confusing, cleaned

FILE = "proposals.json"
LIMIT = 256 * 1024
MOST = 500
"""Proposals, or confusing spots, of one agent."""
LONGEST, MOST_LINES = 8_000, 40
COMMENT = 300


@dataclass(frozen=True)
class Proposal:
    block: str
    """The comment that it is for, as it stands in the tutorial."""
    comment: str
    """Its own, or nothing when the commands belong directly below the block's."""
    commands: str
    setup: str = ""

    @property
    def text(self) -> str:
        """The block that it would be."""
        return f"{self.comment or self.block}\n{self.commands}"


@dataclass(frozen=True)
class Proposals:
    proposals: tuple[Proposal, ...]
    confusing: tuple[Confusing, ...]

    @classmethod
    def joined(cls, parts: list[Proposals]) -> Proposals:
        """What several agents propose; each was asked about other comments."""
        return cls(
            tuple(each for part in parts for each in part.proposals),
            tuple(each for part in parts for each in part.confusing),
        )


def parse(data: bytes, asked: list[Block]) -> Proposals:
    """The agent's file, or a BadRecord that says what is wrong with it."""
    given = _loaded(data)
    if type(given.get("schema")) is not int or given["schema"] != 1:
        raise BadRecord("the schema of the proposals is not 1")
    found = tuple(_proposal(each, asked) for each in _items(given, "proposals"))
    direct = [each.block for each in found if not each.comment]
    if len(set(direct)) < len(direct):
        raise BadRecord("two proposals are to stand directly below the same comment")
    if len({each.text for each in found}) < len(found):
        raise BadRecord("the same proposal is made twice")
    return Proposals(found, tuple(_confusing(each) for each in _items(given, "confusing")))


def _loaded(data: bytes) -> dict[str, object]:
    if len(data) > LIMIT:
        raise BadRecord(f"the proposals are larger than {LIMIT} bytes")
    try:
        value: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"the proposals are not JSON: {str(error)[:200]}") from None
    return _object(value, "the file of proposals")


def _object(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise BadRecord(f"{what} is not an object")
    return value


def _items(given: dict[str, object], key: str) -> list[object]:
    value = given.get(key, [])
    if not isinstance(value, list):
        raise BadRecord(f"{key!r} is not a list")
    if len(value) > MOST:
        raise BadRecord(f"{key!r} has more than {MOST} entries")
    return value


def _text(given: dict[str, object], key: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str):
        raise BadRecord(f"{key!r} is {type(value).__name__}, not a text")
    return value


def _proposal(value: object, asked: list[Block]) -> Proposal:
    given = _object(value, "a proposal")
    block = dedented(_text(given, "block"))
    if block not in {each.text for each in asked}:
        raise BadRecord(f"a proposal is for a comment that was not asked about: {block[:80]!r}")
    setup = _shell(given, "setup") if _text(given, "setup").strip() else ""
    return _sound(Proposal(block, _comment(given), _shell(given, "commands"), setup))


def _comment(given: dict[str, object]) -> str:
    text = _text(given, "comment").strip()
    if "\n" in text or text != text.translate(DROPPED) or len(text) > COMMENT:
        raise BadRecord(f"a comment is not one plain line of at most {COMMENT} characters")
    words = text.lstrip("#!").strip()
    return f"# {words}" if words else ""


def _shell(given: dict[str, object], key: str) -> str:
    """Shell text is refused rather than changed: what is run must be what is shown."""
    text = _text(given, key).strip("\n")
    if len(text) > LONGEST or text.count("\n") >= MOST_LINES:
        raise BadRecord(f"{key!r} is longer than {MOST_LINES} lines or {LONGEST} characters")
    if text != text.translate(DROPPED):
        raise BadRecord(f"{key!r} contains control characters")
    return text


def _sound(proposal: Proposal) -> Proposal:
    """In the tutorial it has to be one block that needs a test, and that same text."""
    found = blocks.parse(proposal.text)
    if [block.text for block in found] != [proposal.text] or not found[0].needs_test:
        shown = proposal.commands[:80]
        raise BadRecord(f"a proposal is not commands without empty lines: {shown!r}")
    return proposal


def _confusing(value: object) -> Confusing:
    given = _object(value, "an entry of 'confusing'")
    command, tried, happened = (
        cleaned(_text(given, key), LONGEST) for key in ("command", "tried", "happened")
    )
    return Confusing(command=command, tried=tried, happened=happened)
