"""Parse and validate `proposals.json`, an agent's proposals for `fill`."""

from __future__ import annotations

from dataclasses import dataclass

from mngr.errors import BadRecord
from mngr_e2e import blocks
from mngr_e2e.blocks import Block, dedented
from mngr_outcome import codec
from mngr_outcome.outcome import DROPPED, Confusing, cleaned

FILE = "proposals.json"
LIMIT = 256 * 1024
MOST = 500
"""Maximum number of proposals, and of confusing spots, of one agent."""
LONGEST, MOST_LINES = 8_000, 40
COMMENT = 300


@dataclass(frozen=True)
class Proposal:
    """Commands for a comment of the tutorial."""

    block: str = ""
    """The comment, as in the tutorial."""
    comment: str = ""
    """The proposal's own comment; empty if the commands belong directly below the block."""
    commands: str = ""
    setup: str = ""

    @property
    def text(self) -> str:
        """Return the block that it would be in the tutorial."""
        return f"{self.comment or self.block}\n{self.commands}"


@dataclass(frozen=True)
class ConfusingSpot(Confusing):
    """A confusing spot as agents write it: fields may be missing."""

    command: str = ""
    tried: str = ""
    happened: str = ""


@dataclass(frozen=True)
class Proposals:
    """The file."""

    proposals: tuple[Proposal, ...] = ()
    confusing: tuple[ConfusingSpot, ...] = ()


def parse(data: bytes, asked: list[Block]) -> Proposals:
    """Return the content of an agent's file; raise BadRecord if it is not valid."""
    told = codec.from_json(Proposals, codec.loaded(data, LIMIT, "the proposals are"))
    if max(len(told.proposals), len(told.confusing)) > MOST:
        raise BadRecord(f"there are more than {MOST} proposals or confusing spots")
    found = tuple(_proposal(each, asked) for each in told.proposals)
    direct = [each.block for each in found if not each.comment]
    if len(set(direct)) < len(direct):
        raise BadRecord("two proposals belong directly below the same comment")
    if len({each.text for each in found}) < len(found):
        raise BadRecord("the same proposal is made twice")
    return Proposals(found, tuple(_confusing(each) for each in told.confusing))


def _proposal(told: Proposal, asked: list[Block]) -> Proposal:
    block = dedented(told.block)
    if block not in {each.text for each in asked}:
        raise BadRecord(f"a proposal is for a comment that was not asked about: {block[:80]!r}")
    setup = _shell(told.setup, "setup") if told.setup.strip() else ""
    return _sound(Proposal(block, _comment(told), _shell(told.commands, "commands"), setup))


def _comment(told: Proposal) -> str:
    text = told.comment.strip()
    if "\n" in text or text != text.translate(DROPPED) or len(text) > COMMENT:
        raise BadRecord(f"a comment is not one plain line of at most {COMMENT} characters")
    words = text.lstrip("#!").strip()
    return f"# {words}" if words else ""


def _shell(text: str, key: str) -> str:
    """Return shell text; raise rather than change it, because it is shown and then run."""
    text = text.strip("\n")
    if len(text) > LONGEST or text.count("\n") >= MOST_LINES:
        raise BadRecord(f"{key!r} is longer than {MOST_LINES} lines or {LONGEST} characters")
    if text != text.translate(DROPPED):
        raise BadRecord(f"{key!r} contains control characters")
    return text


def _sound(proposal: Proposal) -> Proposal:
    """Return the proposal if it would be exactly one block with a command."""
    found = blocks.parse(proposal.text)
    if [block.text for block in found] != [proposal.text] or not found[0].needs_test:
        shown = proposal.commands[:80]
        raise BadRecord(f"a proposal is not commands without empty lines: {shown!r}")
    return proposal


def _confusing(told: ConfusingSpot) -> ConfusingSpot:
    return ConfusingSpot(*(cleaned(each, LONGEST) for each in vars(told).values()))
