"""The input of every operator: one file, the hints of the failure, and the project's words."""

from __future__ import annotations

import ast
import builtins
import difflib
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from mngr_mechanic.program.hints import Hints
from mngr_mechanic.program.source import Edit, SourceFile

BUILT_IN = frozenset(dir(builtins))


@dataclass
class Vocabulary:
    """Words of the whole project."""

    names: Counter[str] = field(default_factory=Counter)
    texts: Counter[str] = field(default_factory=Counter)
    numbers: Counter[str] = field(default_factory=Counter)
    attributes: Counter[str] = field(default_factory=Counter)
    """Includes methods, where they are defined."""

    def learn(self, source: SourceFile) -> None:
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
class Scope:
    source: SourceFile
    hints: Hints
    words: Vocabulary

    # edits

    def edits(
        self,
        node: ast.AST,
        options: Iterable[str],
        kind: str,
        prior: float,
        decay: float = 1.0,
        hinted: bool = False,
        span: "tuple[int, int] | None" = None,
    ) -> Iterator[Edit]:
        """Replace the node, or a part of it, by each option that changes it.

        Each option is less likely than the one before by `decay`.
        """
        path, line = self.source.path, getattr(node, "lineno", 1)
        start, end = span or self.source.span(node)
        for at, new in enumerate(options):
            if self.source.text[start:end] != new:
                yield Edit(path, start, end, new, kind, prior * decay**at, line, hinted)

    # names of the module

    @cached_property
    def functions(self) -> set[str]:
        """Return functions of the module and imported lower-case names, which are rarely values."""
        body = self.source.tree.body
        found = {each.name for each in body if isinstance(each, ast.FunctionDef)}
        named = [name for each in body if isinstance(each, ast.ImportFrom) for name in each.names]
        return found | {each.asname or each.name for each in named if each.name.islower()}

    @cached_property
    def imported(self) -> list[str]:
        body = self.source.tree.body
        named = [name for each in body if isinstance(each, ast.Import) for name in each.names]
        return [(each.asname or each.name).partition(".")[0] for each in named]

    @cached_property
    def bound_by_module(self) -> list[str]:
        found: list[str] = []
        for statement in self.source.tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                found.append(statement.name)
            elif isinstance(statement, ast.ImportFrom):
                found += [each.asname or each.name for each in statement.names]
            elif isinstance(statement, ast.Assign):
                found += [each.id for each in statement.targets if isinstance(each, ast.Name)]
        return found

    def of_module(self, node: ast.AST) -> list[str]:
        """Return names of the module: functions that take these arguments, then similar names."""
        wanted, fitting = getattr(node, "id", ""), self._fitting(node)
        plain = [name for name in self.bound_by_module if name not in ("annotations", "*")]
        plain.sort(key=lambda name: (name not in fitting, name[:2] != wanted[:2], name))
        return plain[:16]

    def _fitting(self, node: ast.AST) -> set[str]:
        """Return functions of the module that take as many arguments as the call of this node."""
        call = self.source.parents.get(node)
        if not isinstance(call, ast.Call) or call.func is not node:
            return set()
        given = len(call.args) + len(call.keywords)
        found = set()
        for each in self.source.tree.body:
            if isinstance(each, ast.FunctionDef):
                every, arguments = _arguments(each), each.args
                optional = len(arguments.defaults)
                optional += sum(default is not None for default in arguments.kw_defaults)
                if len(every) - optional <= given <= len(every):
                    found.add(each.name)
        return found

    # names of a function

    def around(self, node: ast.AST) -> list[str]:
        """Return names that could stand here: nearest lines first, then arguments."""
        function = self.source.function(node)
        if function is None:
            return self.of_module(node)
        line = getattr(node, "lineno", 1)
        found = [
            (abs(each.lineno - line), each.id)
            for each in self.source.inside(function)
            if isinstance(each, ast.Name) and each.id not in BUILT_IN
        ]
        found += [(9, name) for name in self._caught(function)]
        ordered = [name for _, name in sorted(found)] + _arguments(function)
        called = getattr(self.source.parents.get(node), "func", None) is node
        return list(dict.fromkeys([*self.of_module(node), *ordered] if called else ordered))[:20]

    def unread(self, node: ast.AST) -> set[str]:
        """Return arguments and variables that the function never reads: one may be meant here."""
        function = self.source.function(node)
        if function is None:
            return set()
        inside = self.source.inside(function)
        names = [each for each in inside if isinstance(each, ast.Name)]
        read = {each.id for each in names if isinstance(each.ctx, ast.Load)}
        made = {each.id for each in names if isinstance(each.ctx, ast.Store)}
        made |= {each.arg for each in inside if isinstance(each, ast.arg)}
        return (made | set(self._caught(function))) - read - {"self", "cls", "_"}

    def _caught(self, function: ast.AST) -> list[str]:
        """Return names of exceptions: `except OSError as error`."""
        inside = self.source.inside(function)
        return [each.name for each in inside if isinstance(each, ast.ExceptHandler) and each.name]


def _arguments(function: "ast.FunctionDef | ast.AsyncFunctionDef") -> list[str]:
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def pairs(items: list[ast.expr]) -> list[tuple[ast.expr, ast.expr]]:
    """Return each item with the next one."""
    return [(items[at], items[at + 1]) for at in range(len(items) - 1)]


def near(word: str, known: Iterable[str], cutoff: float = 0.72) -> list[str]:
    """Return known words that are similar to this one, nearest first."""
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
