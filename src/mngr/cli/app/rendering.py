"""A manual page as plain text and as roff."""

from __future__ import annotations

import os

from mngr.cli.app.output import bold
from mngr.model.struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WIDEST = 100
_INDENT = 4
_LONGEST_TERM = 24
"""A longer term gets its own line."""
_CLOSE = (("entry", "entry"), ("text", "code"), ("heading", "entry"))
"""Blocks without a blank line between them."""


class Paragraph(Struct):
    """`text` is filled, `code` is kept, `entry` explains its term, `heading` opens a group."""

    kind: str
    text: str
    term: str = ""


class Section(Struct):
    title: str
    blocks: tuple[Paragraph, ...]


class Page(Struct):
    name: str
    summary: str
    sections: tuple[Section, ...]


def text_width() -> int:
    """Return the width of the terminal, from 40 to 100 columns."""
    try:
        columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns)
    except (OSError, ValueError):
        columns = 80
    return max(40, min(columns, WIDEST))


def as_text(page: Page, width: int) -> str:
    lines = [bold("NAME"), f"    {page.name} - {page.summary}"]
    for section in page.sections:
        if section.blocks:
            lines += ["", bold(section.title), *_section_lines(section.blocks, width)]
    return "\n".join(lines) + "\n"


def _section_lines(blocks: Iterable[Paragraph], width: int) -> Iterator[str]:
    blocks = list(blocks)
    fitting = [len(block.term) for block in blocks if len(block.term) <= _LONGEST_TERM]
    column = _INDENT + max(fitting, default=0) + 2
    above = ""
    for block in blocks:
        if above and (above, block.kind) not in _CLOSE:
            yield ""
        yield from _block_lines(block, column, width)
        above = block.kind


def _block_lines(block: Paragraph, column: int, width: int) -> Iterator[str]:
    margin = " " * _INDENT
    if block.kind == "heading":
        yield f"  {bold(block.text)}"
    elif block.kind == "code":
        yield from (f"{margin}  {line}".rstrip() for line in block.text.split("\n"))
    elif block.kind == "text":
        yield from (margin + line for line in fill(block.text, width - _INDENT))
    else:
        yield from _entry_lines(block, column, width)


def _entry_lines(entry: Paragraph, column: int, width: int) -> Iterator[str]:
    lines = [" " * column + line for line in fill(entry.text, width - column)]
    fits = _INDENT + len(entry.term) + 2 <= column
    if not fits or not lines:
        yield " " * _INDENT + bold(entry.term)
        yield from lines
        return
    space = " " * (column - _INDENT - len(entry.term))
    yield " " * _INDENT + bold(entry.term) + space + lines[0].lstrip()
    yield from lines[1:]


def fill(text: str, width: int) -> list[str]:
    """Return lines of at most `width`, broken only at blanks, never at hyphens of options."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def as_roff(page: Page) -> str:
    """Return the page as roff, without a date or version, so that it changes only with its text."""
    lines = [
        f'.TH {_escaped(page.name.upper())} 1 "" "mngr" "mngr manual"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{_escaped(page.name)} \\- {_prose(page.summary)}",
    ]
    for section in page.sections:
        if section.blocks:
            lines.append(f'.SH "{section.title}"')
            lines += [line for block in section.blocks for line in _roff_lines(block)]
    return "\n".join(lines) + "\n"


def _roff_lines(block: Paragraph) -> list[str]:
    if block.kind == "heading":
        return [f'.SS "{_escaped(block.text)}"']
    if block.kind == "code":
        lines = [_guarded(_escaped(line)) for line in block.text.split("\n")]
        return [".PP", ".RS 4", ".nf", *lines, ".fi", ".RE"]
    if block.kind == "text":
        return [".PP", _prose(block.text)]
    return [".TP", f"\\fB{_escaped(block.term)}\\fR", _prose(block.text) or "\\&"]


def _prose(text: str) -> str:
    """Return roff in which `code` is bold."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:  # a lone backtick is only a backtick
        parts = ["`".join(parts)]
    marked = (f"\\fB{_escaped(p)}\\fR" if at % 2 else _escaped(p) for at, p in enumerate(parts))
    return _guarded("".join(marked))


# Characters that roff interprets, or prints as typographic quotes and dashes, which shells reject.
_ESCAPES = str.maketrans(
    {
        "\\": "\\e",
        "-": "\\-",
        '"': "\\(dq",
        "'": "\\(aq",
        "`": "\\(ga",
        "^": "\\(ha",
        "~": "\\(ti",
    }
)


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _guarded(line: str) -> str:
    """Return the line with a guard if roff would take its first character as a request."""
    return f"\\&{line}" if line.startswith(".") else line
