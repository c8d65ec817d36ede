"""Mutants: small planted defects, some of which make a good test fail.

The mechanic's operators make small edits of a program; here they make defects, in lines that a test
is known to reach. The same seed gives the same mutants.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from mngr_mechanic.program import ops_flow, ops_logic, ops_text
from mngr_mechanic.program.candidates import Operator, editable, edits_of, valid
from mngr_mechanic.program.hints import Hints
from mngr_mechanic.program.scope import Scope, Vocabulary
from mngr_mechanic.program.search import describe
from mngr_mechanic.program.source import Edit, SourceFile


def _lost_values(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    if isinstance(node, ast.Return) and node.value is not None:
        yield from scope.edits(node, ["return None"], "lost value", 0.5)


def _other_words(scope: Scope, node: ast.AST) -> Iterator[Edit]:
    value = node.value if isinstance(node, ast.Constant) else None
    written = scope.source.is_docstring(node) or scope.source.in_fstring(node)
    if isinstance(value, str) and value.strip() and not written:
        yield from scope.edits(node, [repr(f"{value[1:]}~")], "words", 0.5)


# Names are left out: another name is mostly a crash, which every test notices. Jumps are left out:
# they make loops without end.
KINDS: tuple[Operator, ...] = (
    ops_logic.operators,
    ops_logic.operands,
    ops_logic.limits,
    ops_logic.booleans,
    ops_logic.constants,
    ops_flow.slices,
    ops_flow.branches,
    ops_text.texts,
    _lost_values,
    _other_words,
)


@dataclass(frozen=True)
class Mutant:
    path: str
    text: str
    told: str
    """`file:line: old -> new`"""


def mutants(
    texts: Mapping[str, str], lines: Mapping[str, Set[int]], seed: str, count: int
) -> list[Mutant]:
    """Return at most `count` mutants, of as many different lines as possible."""
    chance = random.Random(seed)
    words = Vocabulary()
    sources = [source for path, text in sorted(texts.items()) if (source := _parsed(path, text))]
    for source in sources:
        words.learn(source)
    places: dict[tuple[str, int], list[tuple[SourceFile, Edit]]] = {}
    for source in sources:
        for edit in _edits(Scope(source, Hints(), words), lines.get(source.path, frozenset())):
            places.setdefault((edit.path, edit.line), []).append((source, edit))
    return list(_drawn(places, chance, count))


def _parsed(path: str, text: str) -> SourceFile | None:
    if "\ufffd" in text:
        return None  # in another encoding: written back, it would be another program
    try:
        return SourceFile(path, text)
    except (SyntaxError, ValueError, RecursionError, IndexError):
        return None


def _edits(scope: Scope, lines: Set[int]) -> Iterator[Edit]:
    """Yield edits inside functions: the top level of a module runs at each import."""
    source = scope.source
    for node in source.nodes:
        if source.function(node) is not None and not lines.isdisjoint(
            source.statement_lines(source.statement(node))
        ):
            yield from edits_of(scope, node, KINDS) if editable(source, node) else ()


def _drawn(
    places: Mapping[tuple[str, int], list[tuple[SourceFile, Edit]]],
    chance: random.Random,
    count: int,
) -> Iterator[Mutant]:
    """Yield one mutant of each line in turn, until there are enough."""
    made: set[str] = set()
    left = {place: chance.sample(edits, len(edits)) for place, edits in sorted(places.items())}
    while count > 0 and left:
        for place in chance.sample(sorted(left), len(left)):
            found = _next(left[place])
            if found is None:
                del left[place]
                continue
            source, edit = found
            text = edit.applied(source.text)
            if text in made:
                continue
            made.add(text)
            yield Mutant(edit.path, text, describe(source, edit))
            count -= 1
            if count == 0:
                return


def _next(edits: list[tuple[SourceFile, Edit]]) -> tuple[SourceFile, Edit] | None:
    while edits:
        source, edit = edits.pop()
        if valid(source, edit):
            return source, edit
    return None
