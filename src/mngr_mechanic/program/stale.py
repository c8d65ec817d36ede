"""Outdated tests: the tutorial block that a test cites contradicts the test.

An expectation is changed only if the block contains the actual words, does not contain the expected
ones, and a neighbouring word is in the block, the output and the test. If the output only
differs, the program has a defect.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from typing import Optional

from mngr_e2e.blocks import commands
from mngr_mechanic.program import citations
from mngr_mechanic.program.ops_text import written
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.source import Edit, SourceFile

ALIKE = 0.45
WORDS = re.compile(r"[A-Za-z]{3,}")


def edits(source: SourceFile, result: Result) -> list[Edit]:
    """Return the changes of the test's texts that its block requires."""
    test = citations.function(source.tree, result.test)
    block = citations.block(test) if test is not None else ""
    if test is None or result.failure is None or not block:
        return []
    return [*_expectations(source, test, block, result), *_commands(source, test, block, result)]


def _expectations(
    source: SourceFile, test: citations.Function, block: str, result: Result
) -> Iterator[Edit]:
    assert result.failure is not None
    said = [value for value in result.failure.values.values() if isinstance(value, str)]
    said += [command.stdout for command in reversed(result.commands)]
    for node in _texts_on(test, result.failure.line):
        for actual in dict.fromkeys(said):
            new = corrected(str(node.value), actual, block)
            if new is not None:
                yield _edit(source, node, new, "stale expectation")


def _texts_on(test: citations.Function, line: int) -> list[ast.Constant]:
    """Return the literals of the failing statement."""
    found = []
    for node in ast.walk(test):
        if (
            isinstance(node, (ast.Expr, ast.Assert))
            and node.lineno <= line <= (node.end_lineno or 0)
            and not any(isinstance(each, ast.stmt) and each is not node for each in ast.walk(node))
        ):
            found += [each for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [node for node in found if isinstance(node.value, str) and node.value.strip()]


def corrected(expected: str, actual: str, block: str) -> Optional[str]:
    """Return the expectation with the block's words in it; None if it requires none."""
    lines, changed = [], False
    for line in expected.split("\n"):
        near = difflib.get_close_matches(line.strip(), actual.split("\n"), 1, ALIKE)
        new: Optional[str] = line
        if line.strip() and line not in actual:
            new = _words(line, near[0], block) if near else None
        if new is None:
            return None
        changed = changed or new != line
        lines.append(new)
    return "\n".join(lines) if changed else None


def _words(line: str, got: str, block: str) -> Optional[str]:
    """Return the line with the words of `got`, if the block requires each; `got` may be longer."""
    old, new = re.split(r"(\s+)", line), re.split(r"(\s+)", got)
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    made: list[str] = []
    for at, (tag, a, b, c, d) in enumerate(steps):
        if tag == "equal":
            made += old[a:b]
        elif tag == "insert" and at in (0, len(steps) - 1):
            continue
        elif tag == "replace" and at == 0 and not "".join(old[a:b]).strip():
            made += old[a:b]
        elif tag == "replace" and _asked_for(old, new, (a, b), (c, d), block):
            made += new[c:d]
        else:
            return None
    return "".join(made)


def _asked_for(
    old: list[str], new: list[str], out: tuple[int, int], into: tuple[int, int], block: str
) -> bool:
    """Return whether the block has the new word beside its neighbour, and the old word nowhere."""
    before = "".join(new[max(into[0] - 2, 0) : into[0]])
    after = "".join(new[into[1] : into[1] + 2])
    gone, come = "".join(old[out[0] : out[1]]), "".join(new[into[0] : into[1]])
    words, text = WORDS.findall(come), " ".join(block.split())
    if not words or any(word in text for word in WORDS.findall(gone)):
        return False
    beside = [before + come if before.strip() else "", come + after if after.strip() else ""]
    return any(each and " ".join(each.split()) in text for each in beside)


def _commands(
    source: SourceFile, test: citations.Function, block: str, result: Result
) -> Iterator[Edit]:
    """Yield commands of the block that the test does not run, where it runs a similar one."""
    wanted = commands(block)
    ran = [command.text for command in result.commands]
    missing = [command for command in wanted if command not in ran]
    literals = [
        call.args[0]
        for call in dict.fromkeys(citations.runs(test).values())
        if call.args and isinstance(call.args[0], ast.Constant)
    ]
    spare = {str(node.value): node for node in literals if str(node.value) not in wanted}
    for command in missing:
        near = difflib.get_close_matches(command, list(spare), 1, 0.7)
        if near and near[0].split()[:1] == command.split()[:1]:  # the same program
            yield _edit(source, spare[near[0]], command, "stale command")


def _edit(source: SourceFile, node: ast.Constant, new: str, kind: str) -> Edit:
    text = written(source, node, new)
    return Edit(source.path, *source.span(node), text, kind, 1.0, node.lineno, True)
