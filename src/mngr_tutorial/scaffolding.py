"""`mngr tutorial scaffold`: write a simple test for every block without a test.

It is added to the file that cites most blocks of its section, or to `test_<section>.py`.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mngr_e2e.artifacts import write_whole
from mngr_e2e.blocks import Block
from mngr_tutorial.checking import CheckResult
from mngr_tutorial.project import Project

IMPORTS = ("E2eSession", "expect")
LONGEST_NAME = 60
LONGEST_LINE = 100
# Commands that need the shell of the line before: variables, directories, loops, functions.
_STATEFUL = re.compile(
    r"(cd|export|set|for|while|until|if|case|do|done|then|fi|\{|\})\b|\w+=|.*[{&]$"
)


@dataclass(frozen=True)
class NewTest:
    """A test to be written."""

    path: Path
    name: str
    block: Block
    source: str


def plan(project: Project, report: CheckResult) -> list[NewTest]:
    """Return the missing tests, in the order of the tutorial."""
    files = _files_by_section(report)
    taken: dict[Path, set[str]] = {}
    found: list[NewTest] = []
    for block in report.uncovered:
        fallback = project.test_folder / f"test_{_slug(block.section) or 'tutorial'}.py"
        path = files.setdefault(block.section, fallback)
        names = taken.setdefault(path, _names_in(path))
        name = _unique(_test_name(block.caption), names)
        names.add(name)
        found.append(NewTest(path, name, block, render(name, block)))
    return found


def write(tests: list[NewTest]) -> None:
    for path in dict.fromkeys(test.path for test in tests):
        mine = [test for test in tests if test.path == path]
        old = path.read_text(encoding="utf-8") if path.exists() else _head(mine[0].block)
        new = extended(old, [test.source for test in mine])
        ast.parse(new)  # a valid file must stay valid
        write_whole(path, new)


def extended(old: str, sources: list[str]) -> str:
    """Return the text of a file with tests added at its end, and their imports."""
    base = _with_imports(old)
    return "\n\n\n".join([base.rstrip("\n"), *(source.rstrip("\n") for source in sources)]) + "\n"


def _head(block: Block) -> str:
    title = block.section.replace("\\", "").replace('"', "'") or "The tutorial's first blocks"
    return f'"""{title}."""\n\nfrom __future__ import annotations\n'


def render(name: str, block: Block) -> str:
    lines = [f"def {name}(e2e: E2eSession) -> None:", *_cited(block.text)]
    for text in _runs(block):
        lines += [*_run_call(text, block.caption), "    expect(result).to_succeed()"]
    return "\n".join(lines) + "\n"


def _runs(block: Block) -> list[str]:
    """Return what to run: each command by itself, unless they need one shell."""
    commands = block.commands
    if any(_STATEFUL.match(command.lstrip()) for command in commands):
        return ["\n".join(commands)]
    return commands


def _cited(text: str) -> list[str]:
    """Return the lines that cite the text, unescaped if possible."""
    quote = '"""' if '"""' not in text else "'''"
    if quote in text or text.endswith("\\") or (not text.isascii() and not text.isprintable()):
        return [f"    e2e.write_tutorial_block({_literal(text)})"]
    raw = "r" if "\\" in text else ""
    body = [f"    {line}" if line else "" for line in text.split("\n")]
    return [f"    e2e.write_tutorial_block({raw}{quote}", *body, f"    {quote})"]


def _run_call(text: str, caption: str) -> list[str]:
    comment = _literal(caption)
    line = f"    result = e2e.run({_literal(text)}, comment={comment})"
    if "\n" not in text and len(line) <= LONGEST_LINE:
        return [line]
    pieces = [f"        {_literal(piece)}" for piece in text.splitlines(keepends=True)]
    pieces[-1] += ","
    return ["    result = e2e.run(", *pieces, f"        comment={comment},", "    )"]


def _literal(text: str) -> str:
    """Return a Python literal with a formatter's quotes; JSON has the same escapes."""
    quoted = json.dumps(text, ensure_ascii=False)
    if text.count('"') <= text.count("'"):
        return quoted
    inner = quoted[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def _files_by_section(report: CheckResult) -> dict[str, Path]:
    """Return, by section, the file that cites most of its blocks."""
    sections = {block.text: block.section for block in report.blocks}
    counts: dict[str, Counter[Path]] = {}
    for citation in report.citations:
        section = sections.get(citation.block or "")
        if section is not None:
            counts.setdefault(section, Counter())[citation.path] += 1
    return {section: each.most_common(1)[0][0] for section, each in counts.items()}


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _test_name(caption: str) -> str:
    """Return a name from a caption, truncated after a word."""
    slug = _slug(caption)
    if len(slug) > LONGEST_NAME:
        slug = slug[: LONGEST_NAME + 1].rpartition("_")[0] or slug[:LONGEST_NAME]
    return f"test_{slug or 'block'}"


def _unique(name: str, taken: set[str]) -> str:
    numbers = iter(range(2, len(taken) + 3))
    wanted = name
    while wanted in taken:
        wanted = f"{name}_{next(numbers)}"
    return wanted


def _names_in(path: Path) -> set[str]:
    if not path.exists():
        return set()
    return set(_defined(ast.parse(path.read_bytes())))


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _with_imports(text: str) -> str:
    tree = ast.parse(text)
    missing = [name for name in IMPORTS if name not in set(_defined(tree))]
    if not missing:
        return text
    lines = text.split("\n")
    at = _end_of_head(tree)
    line = f"from mngr_e2e import {', '.join(missing)}"
    gap = [""] if at and not _is_import(tree, at) else []
    return "\n".join([*lines[:at], *gap, line, *lines[at:]])


def _end_of_head(tree: ast.Module) -> int:
    """Return the line after which imports may be added: after the docstring and imports."""
    end = 0
    for node in tree.body:
        is_docstring = node is tree.body[0] and isinstance(node, ast.Expr)
        if not is_docstring and not isinstance(node, ast.Import | ast.ImportFrom):
            break
        end = node.end_lineno or end
    return end


def _is_import(tree: ast.Module, line: int) -> bool:
    """Return whether an import ends at this line, other than from __future__."""
    return any(
        node.end_lineno == line
        and isinstance(node, ast.Import | ast.ImportFrom)
        and getattr(node, "module", "") != "__future__"
        for node in tree.body
    )
