"""Hints of a failure: the words that were expected, and the actual ones."""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from mngr_mechanic.program.reports import Failure, Invocation

WORD = re.compile(r"--?[A-Za-z][\w-]*|[A-Za-z_][\w-]*")
NUMBER = re.compile(r"\d+(?:\.\d+)?")
ASKED = re.compile(
    r"(?:no attribute|KeyError:|not defined|unexpected keyword argument|unrecognized arguments:"
    r"|invalid choice:|NameError: name|required:|there is no \w+|unknown \w+)"
    r"\s+['\"]?(--?[\w-]+|\w+)"
)
QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
CONTEXT = 6


@dataclass
class Hints:
    expected: list[str] = field(default_factory=list)
    """Texts in the failing assertion."""
    actual: list[str] = field(default_factory=list)
    """Texts that it compared with them."""
    changes: list[tuple[str, str]] = field(default_factory=list)
    """(actual, expected), with some context."""
    words: set[str] = field(default_factory=set)
    """Words of the test and its commands."""
    numbers: set[str] = field(default_factory=set)
    message: str = ""
    """Everything that was printed or raised."""
    documented: set[str] = field(default_factory=set)
    """Words of the project's documents and tests, which count as correct."""
    asked: set[str] = field(default_factory=set)
    """Words that an error message calls missing or unknown."""

    @property
    def says_none(self) -> bool:
        return "NoneType" in self.message or "None" in self.actual


def gather(test_source: str, line: int, failure: Failure, commands: list[Invocation]) -> Hints:
    tree = ast.parse(test_source)
    hints = Hints()
    hints.expected = _literals_at(tree, line)
    hints.actual = [str(value) for value in failure.values.values()]
    said = [part for command in commands for part in (command.stdout, command.stderr)]
    hints.actual += _quoted(failure.message)
    # A test with a table of cases has its expectations in variables, so either side may be wrong.
    hints.expected += [text for text in hints.actual if text and text not in hints.expected]
    # `expect(e2e.run(…).stdout)` has no variable, but the last command is known.
    hints.actual = list(dict.fromkeys([*hints.actual, *(part for part in said[-2:] if part)]))
    hints.message = "\n".join([failure.message, failure.type, *said])
    hints.asked = set(ASKED.findall(hints.message))
    test = _function_at(tree, line)
    values = [node.value for node in ast.walk(test) if isinstance(node, ast.Constant)]
    texts = [value for value in values if isinstance(value, str)]
    texts += [command.text for command in commands]
    hints.words = {word for text in texts for word in WORD.findall(text)}
    hints.words |= {word.lstrip("-").replace("-", "_") for word in hints.words}
    hints.numbers = {number for text in texts for number in NUMBER.findall(text)}
    hints.numbers |= {str(value) for value in values if type(value) in (int, float)}
    hints.changes = changes(hints.expected, hints.actual)
    return hints


def _quoted(message: str) -> list[str]:
    """Return the texts in an assertion's message: for `assert f(x) == "y"` the value of f(x)."""
    found = []
    for text in QUOTED.findall(message)[:6]:
        with suppress(SyntaxError, ValueError):
            found.append(str(ast.literal_eval(text)))
    return found


def _literals_at(tree: ast.AST, line: int) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Expr, ast.Assert, ast.Assign)) and _spans(node, line):
            found += [each.value for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return [str(value) for value in found if isinstance(value, (str, int, float)) and value != ""]


def _spans(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _function_at(tree: ast.Module, line: int) -> ast.AST:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    around = [node for node in ast.walk(tree) if isinstance(node, kinds) and _spans(node, line)]
    return around[-1] if around else tree


def changes(expected: list[str], actual: list[str]) -> list[tuple[str, str]]:
    """Return replacements that make an actual text more like an expected one; best first."""
    found: Counter[tuple[str, str]] = Counter()
    for wanted in expected[:8]:
        for got in actual[:8]:
            found.update(_pairs(got[:4000], wanted[:4000]))
    return sorted(found, key=lambda pair: (-found[pair], len(pair[0]) + len(pair[1]), pair))[:60]


def _pairs(got: str, wanted: str) -> set[tuple[str, str]]:
    """Return the replacements of similar lines; few literals have more than one line."""
    found: set[tuple[str, str]] = set()
    lines = got.split("\n")
    for want in wanted.split("\n"):
        near = difflib.get_close_matches(want, lines, 1, 0.4) if want else []
        near += [line for line in lines if len(want) < len(line) and want[:4] and want[:4] in line]
        for line in near[:2]:
            found |= _line_pairs(line, want)
    return found


def _line_pairs(got: str, want: str) -> set[tuple[str, str]]:
    found = set()
    matcher = difflib.SequenceMatcher(None, got, want, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal" or (b - a > 40 and d - c > 40):
            continue
        for around in (0, 1, CONTEXT):
            left, right = max(a - around, 0), min(b + around, len(got))
            lead, tail = got[left:a], got[b:right]
            if got[left:right]:
                found.add((got[left:right], lead + want[c:d] + tail))
    return found
