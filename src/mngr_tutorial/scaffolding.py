"""`mngr tutorial scaffold`: write a simple test for every block without a test, in new files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from mngr_e2e.artifacts import write_whole
from mngr_e2e.blocks import Block
from mngr_tutorial.checking import CheckResult
from mngr_tutorial.project import Project

HEAD = '''\
"""{title}."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect'''
LONGEST_NAME = 60
LONGEST_LINE = 100
# Commands that require the shell of the previous line: variables, directories, loops, functions.
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
    there = [*project.test_files(), *project.test_folder.glob("*.py")]
    stems = {path.stem for path in there}
    taken: dict[Path, set[str]] = {}
    found: list[NewTest] = []
    for block in report.uncovered:
        stem = _unique(f"test_{_slug(block.section) or 'tutorial'}", stems)
        path = project.test_folder / f"{stem}.py"
        names = taken.setdefault(path, set())
        name = _unique(_test_name(block.caption), names)
        names.add(name)
        found.append(NewTest(path, name, block, render(name, block)))
    return found


def write(tests: list[NewTest]) -> None:
    for path in dict.fromkeys(test.path for test in tests):
        write_whole(path, module([test for test in tests if test.path == path]))


def module(tests: list[NewTest]) -> str:
    """Return the text of a file with these tests."""
    section = tests[0].block.section
    title = section.replace("\\", "").replace('"', "'") or "The tutorial's first blocks"
    head = HEAD.format(title=title)
    return "\n\n\n".join([head, *(test.source.rstrip("\n") for test in tests)]) + "\n"


def render(name: str, block: Block) -> str:
    lines = [f"def {name}(e2e: E2eSession) -> None:", *_cited(block.text)]
    for text in _runs(block):
        lines += [*_run_call(text, block.caption), "    expect(result).to_succeed()"]
    return "\n".join(lines) + "\n"


def _runs(block: Block) -> list[str]:
    """Return the texts to run: each command by itself, unless they require one shell."""
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
