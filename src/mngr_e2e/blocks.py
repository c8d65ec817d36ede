"""A tutorial as blocks, and a block as commands.

A block is a group of non-empty lines. A block of comments, or one that starts with a shebang, is
prose: it requires no test. A section starts with a comment block that is a heading: `## Looking at
notes`, `# === Looking at notes ===` or `# LOOKING AT NOTES`.

The program of mngr_mechanic uses this module as well, on Python 3.9 and without other modules of
mngr_e2e.
"""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

MARK = "Tutorial block:"
CALL = "write_tutorial_block"


@dataclass(frozen=True)
class Block:
    """A block, as `dedented` returns it, and the number of its first line."""

    text: str
    line: int
    section: str = ""

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def has_line(self, line: int) -> bool:
        return self.line <= line < self.line + len(self.lines)

    @property
    def needs_test(self) -> bool:
        return not self.text.startswith("#!") and any(map(_is_command, self.lines))

    @property
    def is_heading(self) -> bool:
        """Return whether a section starts with it."""
        return bool(_heading(self.lines))

    @property
    def caption(self) -> str:
        """Return the comment at its start, on one line; without one, its first line."""
        words = [line.lstrip("# ") for line in _leading_comments(self.lines)]
        return " ".join(word for word in words if word) or self.lines[0]

    @property
    def commands(self) -> list[str]:
        return commands(self.text)


def parse(text: str) -> list[Block]:
    """Return every block of a tutorial in order, including prose."""
    found: list[Block] = []
    section = ""
    for line, lines in _runs(text.split("\n")):
        body = dedented("\n".join(lines))
        section = _heading(body.split("\n")) or section
        found.append(Block(body, line, section))
    return found


def dedented(block: str) -> str:
    """Return a block as it is compared: without indentation, empty ends and trailing blanks."""
    lines = [line.rstrip() for line in textwrap.dedent(block).strip("\n").split("\n")]
    return textwrap.dedent("\n".join(lines)).strip("\n").rstrip()


def in_docstring(text: str) -> Iterator[Block]:
    """Yield the block that follows each line `Tutorial block:`, with its line in the docstring."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip() == MARK:
            for block in parse("\n".join(lines[number:]))[:1]:
                yield replace(block, line=number + block.line)


def cited(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[int, str | None]]:
    """Yield the line and text of each block that a test cites; None for what is not plain text."""
    first = test.body[0]
    docstring = _plain(first.value) if isinstance(first, ast.Expr) else None
    for block in in_docstring(docstring or ""):
        yield first.lineno + block.line - 1, block.text
    for node in ast.walk(test):
        if not isinstance(node, ast.Call) or _called(node.func) != CALL:
            continue
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        text = _plain(given[0]) if given else None
        line = given[0].lineno if given else node.lineno
        if text is None:
            yield line, None
        for block in parse(text or ""):
            yield line + block.line - 1, block.text


def _called(func: ast.expr) -> str:
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _plain(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def repeated(blocks: Iterable[Block]) -> Iterator[tuple[Block, Block]]:
    """Yield the first occurrence of each repeated block, and the repetition; not for prose."""
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
    """Return the title if the block is a heading; lines that consist of rules are its frame."""
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
# They only change the shell that runs them; a test uses `cwd=` and `env=` instead.
_SHELL_STATE = ("cd", "export", "set", "unset", "umask")


def commands(text: str) -> list[str]:
    """Return the commands of shell text, each with its continuation lines and here-documents."""
    lines = iter(text.split("\n"))
    return ["\n".join(_whole(line, lines)) for line in lines if _is_command(line)]


def _whole(line: str, rest: Iterator[str]) -> Iterator[str]:
    """Yield the first line of a command and the lines that belong to it."""
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
    """Return whether a quotation, a line or a pipe continues."""
    try:
        shlex.split(text, comments=True)
        return text.endswith(("|", "&&")) and "<<" not in text
    except ValueError:
        # The body of a here-document may contain any quote.
        return text.endswith("\\") or "<<" not in text


def keys(text: str) -> list[tuple[str, str]]:
    """Return the first and the second word of each command, also after `&&`, `|` and `;`.

    The second is "" if it is an option.
    """
    found = (_key(words) for command in commands(text) for words in _simple(command))
    return [key for key in found if key is not None]


def asked(command: str) -> tuple[str, str] | None:
    """Return the key that a test must run; None if the command only changes the shell."""
    known = (_key(words) for words in _simple(command))
    return next((key for key in known if key and key[0] not in _SHELL_STATE), None)


def ran(command: str, texts: Iterable[str]) -> bool:
    """Return whether one of the texts that were run contains this command of a block."""
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
    """Yield the words of each simple command, without here-documents."""
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
