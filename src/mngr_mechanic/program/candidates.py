"""All small edits of the suspicious places, the likeliest first."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from mngr_mechanic.program import localise, ops_flow, ops_logic, ops_names, ops_text
from mngr_mechanic.program.hints import Hints
from mngr_mechanic.program.scope import Scope, Vocabulary
from mngr_mechanic.program.source import Edit, SourceFile, parses

Operator = Callable[[Scope, ast.AST], Iterator[Edit]]
KINDS: tuple[Operator, ...] = (
    ops_logic.operators,
    ops_logic.operands,
    ops_logic.limits,
    ops_logic.booleans,
    ops_logic.constants,
    ops_flow.slices,
    ops_flow.indexes,
    ops_flow.jumps,
    ops_flow.branches,
    ops_flow.returns,
    ops_names.names,
    ops_names.attributes,
    ops_names.calls,
    ops_names.handlers,
    ops_text.texts,
)
HINTED_FLOOR = 0.45
CERTAIN = 0.97
NOBODY_RUNS = 0.01
Key = tuple[int, int, str]
CROWD = 0.97
"""Factor for each further candidate at one place, so that other places are tried too."""
TURN = 0.985
"""The same for each further candidate in one statement."""


def ranked(
    sources: Iterable[SourceFile], scores: Mapping[tuple[str, int], float], hints: Hints
) -> list[tuple[float, Edit]]:
    """Return edits with their scores, best first; not all of them are valid."""
    sources = list(sources)
    words = Vocabulary()
    for source in sources:
        words.learn(source)
    found: list[tuple[float, Edit]] = []
    for source in sources:
        lines = {line: score for (path, line), score in scores.items() if path == source.path}
        if lines:
            found += _of_file(Scope(source, hints, words), lines)
    found.sort(key=lambda each: (-each[0], len(each[1].new), each[1].path, each[1].start))
    return found


def _of_file(scope: Scope, lines: Mapping[int, float]) -> list[tuple[float, Edit]]:
    source = scope.source
    suspicion = localise.spread(source, lines)
    found: dict[Key, tuple[float, Edit]] = {}
    places: dict[Key, ast.AST] = {}
    for node in source.nodes:
        statement = source.statement(node)
        score = suspicion.get(statement, 0.0)
        if score <= 0 and ops_names.may_define(scope, node):
            score = NOBODY_RUNS
        if score <= 0 or not editable(source, node):
            continue
        for at, edit in enumerate(edits_of(scope, node, KINDS)):
            floor = 1.0 if edit.prior >= CERTAIN else HINTED_FLOOR
            place = max(score, floor) if edit.hinted else score
            key = (edit.start, edit.end, edit.new)
            value = place * edit.prior * CROWD**at
            if key not in found or found[key][0] < value:
                found[key], places[key] = (value, edit), statement
    return list(_taking_turns(found, places))


def _taking_turns(
    found: Mapping[Key, tuple[float, Edit]], places: Mapping[Key, ast.AST]
) -> Iterator[tuple[float, Edit]]:
    """Lower the score of each further edit in one statement, which may be a table of words."""
    turns: Counter[ast.AST] = Counter()
    for key in sorted(found, key=lambda key: (-found[key][0], key)):
        value, edit = found[key]
        yield value * TURN ** turns[places[key]], edit
        turns[places[key]] += 1


def editable(source: SourceFile, node: ast.AST) -> bool:
    if source.is_annotation(node):
        return False
    return not source.in_fstring(node) or source.trusted(node)


def edits_of(scope: Scope, node: ast.AST, kinds: Iterable[Operator]) -> Iterator[Edit]:
    for kind in kinds:
        try:
            yield from kind(scope, node)
        except (AttributeError, IndexError, UnicodeError):
            continue  # a node without a place, as older Pythons have inside f-strings


def valid(source: SourceFile, edit: Edit) -> bool:
    """Return whether the edited file parses and has another tree."""
    text = edit.applied(source.text)
    return parses(text) and ast.dump(ast.parse(text)) != source.dump
