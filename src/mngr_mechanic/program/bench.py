"""What every kind of repair gets to work with."""

from __future__ import annotations

import ast
import difflib
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from mngr_mechanic.program.hints import Hints
from mngr_mechanic.program.source import Edit, Source


@dataclass
class Vocabulary:
    """Words of the whole project."""

    names: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    attributes: Counter[str] = field(default_factory=Counter)
    """Also methods, where they are defined."""

    def learn(self, source: Source) -> None:
        for token in source.tokens:
            if token.type == tokenize.NAME:
                self.names[token.text] += 1
            elif token.type == tokenize.NUMBER:
                self.numbers[token.text] += 1
        for node in source.nodes:
            if isinstance(node, ast.Attribute):
                self.attributes[node.attr] += 1
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.attributes[node.name] += isinstance(source.parents.get(node), ast.ClassDef)
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, str) and len(value) <= 60 and not source.is_docstring(node):
                self.texts[value] += 1


@dataclass
class Bench:
    source: Source
    hints: Hints
    words: Vocabulary

    def edit(
        self,
        node: ast.AST,
        span: tuple[int, int],
        new: str,
        kind: str,
        prior: float,
        hinted: bool = False,
    ) -> Iterator[Edit]:
        """One edit, unless it changes nothing."""
        if self.source.text[span[0] : span[1]] != new:
            line = getattr(node, "lineno", 1)
            yield Edit(self.source.path, *span, new, kind, prior, line, hinted)

    def replace(
        self, node: ast.AST, new: str, kind: str, prior: float, hinted: bool = False
    ) -> Iterator[Edit]:
        return self.edit(node, self.source.span(node), new, kind, prior, hinted)


def pairs(items: list[ast.expr]) -> list[tuple[ast.expr, ast.expr]]:
    """Neighbours."""
    return [(items[at], items[at + 1]) for at in range(len(items) - 1)]


def near(word: str, known: Iterable[str], cutoff: float = 0.72) -> list[str]:
    """Known words that are almost this one, nearest first."""
    letters = set(word)
    others = [
        each
        for each in known
        # difflib is slow: most words can be told apart by their letters.
        if each != word
        and abs(len(each) - len(word)) <= 3
        and 2 * len(letters & set(each)) >= len(letters)
    ]
    return _near(word, tuple(sorted(others)), cutoff) if others else []


@lru_cache(maxsize=4096)
def _near(word: str, known: tuple[str, ...], cutoff: float) -> list[str]:
    return difflib.get_close_matches(word, known, 4, cutoff)
