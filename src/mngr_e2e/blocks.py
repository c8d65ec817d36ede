"""A tutorial as blocks, and a block as commands.

A block is a run of consecutive non-empty lines. One that holds only comments, or begins with a
shebang, is prose: it needs no test. A section begins with a comment block that is a heading:
`## Looking at notes`, `# === Looking at notes ===` or `# LOOKING AT NOTES`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mngr_e2e.artifacts import dedented


class TutorialError(ValueError):
    """The tutorial cannot be read as blocks; the message names the lines."""


@dataclass(frozen=True)
class Block:
    text: str
    """Without indentation and trailing blanks: what a citation is compared with."""
    line: int
    """Of its first line in the tutorial, from 1."""
    section: str = ""

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @property
    def needs_test(self) -> bool:
        return not self.text.startswith("#!") and any(map(_is_command, self.lines))

    @property
    def is_heading(self) -> bool:
        """Whether a section begins with it."""
        return bool(_heading(self.lines))

    @property
    def caption(self) -> str:
        """The comment it begins with, on one line; else its first line."""
        words = [line.lstrip("# ") for line in _leading_comments(self.lines)]
        return " ".join(word for word in words if word) or self.lines[0]

    @property
    def commands(self) -> list[str]:
        return commands(self.text)


def parse(text: str) -> list[Block]:
    """Every block, prose too, in order."""
    found: list[Block] = []
    section = ""
    for line, lines in _runs(text.split("\n")):
        body = dedented("\n".join(lines))
        section = _heading(body.split("\n")) or section
        found.append(Block(body, line, section))
    return found


def check_distinct(blocks: Iterable[Block]) -> None:
    """A citation of one of two identical blocks could not say which it means."""
    twice = [f"line {again.line} repeats line {first.line}" for first, again in repeated(blocks)]
    if twice:
        raise TutorialError(f"identical blocks: {'; '.join(twice)}")


def repeated(blocks: Iterable[Block]) -> Iterator[tuple[Block, Block]]:
    """Every block that needs a test and stands there before, with its first occurrence."""
    first: dict[str, Block] = {}
    for block in blocks:
        if block.needs_test and first.setdefault(block.text, block) is not block:
            yield first[block.text], block


def _runs(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    run: list[str] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.strip():
            run.append(line)
        elif run:
            yield number - len(run), run
            run = []


def _is_command(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _leading_comments(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if _is_command(line):
            return
        yield line


_RULED = re.compile(r"#\s*[=~-]{3,}\s*(?P<title>\S.*?)\s*[=~-]*")
_RULE = re.compile(r"#[#=~\s-]*")


def _heading(lines: list[str]) -> str:
    """The section that a comment block opens, if it does. Lines of nothing but rules are frames."""
    titles = [line for line in lines if not _RULE.fullmatch(line)]
    if len(titles) != 1 or _is_command(titles[0]) or titles[0].startswith("#!"):
        return ""
    title = titles[0]
    bare = title.lstrip("#").strip()
    if ruled := _RULED.fullmatch(title):
        return ruled["title"]
    framed = len(lines) > 1 and _RULE.fullmatch(lines[0]) and len(lines[0]) > 3
    shouted = bare == bare.upper() and any(map(str.isalpha, bare))
    return bare if title.startswith("##") or framed or shouted else ""


# commands

_HEREDOC = re.compile(r"(?<!<)<<-?\s*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
# They only change the shell they run in; a test says the same with `cwd=` and `env=`.
_SHELL_STATE = ("cd", "export", "set", "unset", "umask")


def commands(text: str) -> list[str]:
    """The commands of shell text, each with its continuation lines and here-documents."""
    lines = iter(text.split("\n"))
    return ["\n".join(_whole(line, lines)) for line in lines if _is_command(line)]


def _whole(line: str, rest: Iterator[str]) -> Iterator[str]:
    """The first line of a command and those that belong to it."""
    ends = [name for _, name in _HEREDOC.findall(line)]
    yield line
    text = line
    while _is_open(text) and (more := next(rest, None)) is not None:
        ends += [name for _, name in _HEREDOC.findall(more)]
        text += f"\n{more}"
        yield more
    for end in ends:
        for more in rest:
            yield more
            if more.strip() == end:
                break


def _is_open(text: str) -> bool:
    """Whether a quotation, a line or a pipe goes on."""
    try:
        shlex.split(text, comments=True)
        return text.endswith(("|", "&&")) and "<<" not in text
    except ValueError:
        # The body of a here-document may hold any quote.
        return text.endswith("\\") or "<<" not in text


def keys(text: str) -> list[tuple[str, str]]:
    """What each command of shell text is known by: its first word, and the second if that is no
    option (else ""). All of a line's commands: those after `&&`, `|` and `;` too."""
    found = (_key(words) for command in commands(text) for words in _simple(command))
    return [key for key in found if key is not None]


def asked(command: str) -> tuple[str, str] | None:
    """What a test of this command must run; None for what only changes the reader's shell."""
    known = (_key(words) for words in _simple(command))
    return next((key for key in known if key and key[0] not in _SHELL_STATE), None)


def ran(command: str, texts: Iterable[str]) -> bool:
    """Whether any of the texts that were run holds this command of a block."""
    wanted = asked(command)
    if wanted is None:
        return True
    first, second = wanted
    return any(
        key[0] == first and (not second or key[1] == second) for text in texts for key in keys(text)
    )


def _key(words: list[str]) -> tuple[str, str] | None:
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if not words:
        return None
    second = words[1] if len(words) > 1 and not words[1].startswith("-") else ""
    return words[0], second


def _simple(command: str) -> Iterator[list[str]]:
    """The words of each simple command; here-documents are left out."""
    command = command.replace("\\\n", " ")
    head = command.split("\n", 1)[0] if _HEREDOC.search(command) else command
    words: list[str] = []
    for word in _words(head):
        if word and set(word) <= set("();<>|&"):
            if not set(word) & set("<>"):
                yield words
                words = []
        else:
            words.append(word)
    yield words


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:  # no closing quotation
        return text.split()
