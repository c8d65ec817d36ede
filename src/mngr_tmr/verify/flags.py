"""Flags: lines of an implementation change that look like special cases for a test. Pure."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import TypeGuard

RUNNER = re.compile(
    r"\b(_?pytest|unittest|PYTEST_\w+|MNGR_\w+|sys\.modules|sys\._getframe|inspect\.stack|mngr_e2e"
    r"|mngr_tmr\w*)\b"
)
EQUAL = re.compile(r"\b(__eq__|__ne__|__builtins__|builtins)\b")
"""An object may claim to equal whatever a test expects."""
SHORT = 4
"""A shorter literal may be anywhere by chance."""
LIMIT = 20
TEXT = re.compile(r"""'[^']*'|"[^"]*\"""")
ALIKE = 0.5
"""A text this similar to the text before it is a correction, for example of a message."""


@dataclass(frozen=True)
class Added:
    """A line that a change adds."""

    path: str
    number: int
    text: str


def flags(
    added: Iterable[Added],
    tests: Sequence[str],
    expected: Iterable[str],
    known: str,
    removed: Collection[str] = (),
) -> list[str]:
    """Return `file:line: text (why)` of each flagged line.

    `expected` are literals of the tests, `known` is the old source. A name that is in one of the
    `removed` lines is not flagged, nor a literal in a line that only corrects a text of one.
    """
    before = "\n".join(removed)
    names = [name for name in _names(tests) if not _named(name, before)]
    fresh = [text for text in expected if len(text.strip()) >= SHORT and text not in known]
    found = []
    for line in added:
        corrected = any(_corrects(line.text, each) for each in removed)
        why = _why(line.text, before, names, () if corrected else fresh)
        if why:
            found.append(f"{line.path}:{line.number}: {line.text.strip()[:120]} ({why})")
    return found[:LIMIT]


def _why(text: str, before: str, names: Sequence[str], expected: Sequence[str]) -> str:
    runner = next((each for each in RUNNER.findall(text) if not _named(each, before)), "")
    if runner:
        return f"names the test runner: {runner}"
    equal = next((each for each in EQUAL.findall(text) if not _named(each, before)), "")
    if equal:
        return f"affects what tests compare: {equal}"
    named = next((name for name in names if _named(name, text)), "")
    if named:
        return f"names the test: {named}"
    values = _values(text)
    literal = next((e for e in expected if _written(e) in text or e.strip("\n") in values), "")
    return f"has a literal that the test expects: {literal.strip()[:40]!r}" if literal else ""


def _named(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _corrects(new: str, old: str) -> bool:
    """Return whether the lines differ only in texts, and each text is similar to the one before."""
    texts = list(zip(TEXT.findall(new), TEXT.findall(old), strict=False))
    return TEXT.sub("", new) == TEXT.sub("", old) and all(
        one == other or SequenceMatcher(None, one, other).ratio() >= ALIKE for one, other in texts
    )


def _names(tests: Sequence[str]) -> list[str]:
    """Return the names of files and functions of tests."""
    found: list[str] = []
    for test in tests:
        path, _, rest = test.partition("::")
        found += [PurePosixPath(path).name, PurePosixPath(path).stem]
        found += [part.partition("[")[0] for part in rest.split("::") if part]
    return sorted(set(found) - {"", "tests", "test"}, key=len, reverse=True)


def _values(line: str) -> str:
    """Return the texts in a line without quotes and escapes, joined as Python joins them."""
    found: list[str] = []
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(line.strip()).readline):
            if token.type == tokenize.STRING:
                with suppress(ValueError, SyntaxError):  # an f-string, or another language
                    found.append(str(ast.literal_eval(token.string)))
    return "".join(found)


def _written(literal: str) -> str:
    """Return the literal as in most sources: on one line, without a final newline."""
    return repr(literal.strip("\n"))[1:-1]


def expected(function: ast.AST, module: ast.Module) -> set[str]:
    """Return texts and numbers in the assertions and parameters of a test, or named in these."""
    asserting = [node for node in ast.walk(function) if _asserts(node)]
    places = [*asserting, *getattr(function, "decorator_list", [])]
    names = {n.id for place in places for n in ast.walk(place) if isinstance(n, ast.Name)}
    places += [n.value for n in (*ast.walk(function), *module.body) if _defines(n, names)]
    constants = [
        each for place in places for each in ast.walk(place) if isinstance(each, ast.Constant)
    ]
    return {str(each.value) for each in constants if type(each.value) in (str, int, float)}


def _defines(node: ast.AST, names: Collection[str]) -> TypeGuard[ast.Assign]:
    """Return whether it gives a name a constant value, not the result of what is tested."""
    if not isinstance(node, ast.Assign) or any(isinstance(n, ast.Call) for n in ast.walk(node)):
        return False
    return any(isinstance(each, ast.Name) and each.id in names for each in node.targets)


def examples(source: str | None) -> set[tuple[str, str]]:
    """Return the doctests in the docstrings of a module: what is typed, and the output."""
    from doctest import DocTestParser  # imports pdb

    try:
        tree = ast.parse(source or "")
    except (SyntaxError, ValueError):
        return set()
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
    found: set[tuple[str, str]] = set()
    for text in texts:
        with suppress(ValueError):
            found |= {(each.source, each.want) for each in DocTestParser().get_examples(text)}
    return found


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    name = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
    return name.startswith(("to_", "not_to_", "assert"))
