"""Find the comments of a tutorial without commands, and insert commands below them."""

from __future__ import annotations

from mngr.errors import UsageError
from mngr_e2e import blocks
from mngr_e2e.blocks import Block
from mngr_tutorial.proposals import Proposal


def without_commands(everything: list[Block], lines: list[int]) -> list[Block]:
    """Return the blocks of comments, except headings and the first lines; each text once."""
    found = {block.text: block for block in reversed(everything) if _asks(block)}
    asked = sorted(found.values(), key=lambda block: block.line)
    for line in lines:
        if not any(block.has_line(line) for block in asked):
            raise UsageError(f"line {line} is not in a comment without commands")
    return [b for b in asked if not lines or any(map(b.has_line, lines))]


def _asks(block: Block) -> bool:
    return not (block.needs_test or block.is_heading or block.text.startswith("#!"))


def filled(text: str, kept: list[Proposal]) -> str:
    """Return the tutorial with the proposals: below their comments, or as blocks after them."""
    lines = text.split("\n")
    places = {block.text: block for block in reversed(blocks.parse(text))}
    wanted = {each.block for each in kept}
    gone = [comment for comment in wanted if comment not in places]
    if gone:
        raise UsageError(f"the tutorial has changed: it no longer has the comment {gone[0][:80]!r}")
    for block in sorted((places[each] for each in wanted), key=lambda b: -b.line):
        mine = [each for each in kept if each.block == block.text]
        end = block.line - 1 + len(block.lines)
        lines[end:end] = _inserted(mine, _indentation(lines[end - 1]))
    return "\n".join(lines)


def _inserted(proposals: list[Proposal], indent: str) -> list[str]:
    direct = [each for each in proposals if not each.comment]
    others = [each for each in proposals if each.comment]
    texts = [each.commands for each in direct] + [f"\n{each.text}" for each in others]
    return [indent + line if line else "" for text in texts for line in text.split("\n")]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
