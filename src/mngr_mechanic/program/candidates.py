"""All small repairs of the suspicious places, the likeliest first."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from mngr_mechanic.program import localise, ops_flow, ops_logic, ops_names, ops_text
from mngr_mechanic.program.bench import Bench, Vocabulary
from mngr_mechanic.program.hints import Hints
from mngr_mechanic.program.source import Edit, Source, parses

KINDS: tuple[Callable[[Bench, ast.AST], Iterator[Edit]], ...] = (
    ops_logic.comparisons,
    ops_logic.booleans,
    ops_logic.constants,
    ops_logic.arithmetic,
    ops_flow.slices,
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
"""Each further candidate at one place is a little less likely, so that others get a turn."""
TURN = 0.985
"""The same for each further candidate in one statement."""


def ranked(
    sources: Iterable[Source], scores: Mapping[tuple[str, int], float], hints: Hints
) -> list[tuple[float, Edit]]:
    """(score, edit), best first; every edit parses and changes the tree."""
    sources = list(sources)
    words = Vocabulary()
    for source in sources:
        words.learn(source)
    found: list[tuple[float, Edit]] = []
    for source in sources:
        lines = {line: score for (path, line), score in scores.items() if path == source.path}
        if lines:
            found += _of_file(Bench(source, hints, words), lines)
    found.sort(key=lambda each: (-each[0], len(each[1].new), each[1].path, each[1].start))
    return found


def _of_file(bench: Bench, lines: Mapping[int, float]) -> list[tuple[float, Edit]]:
    suspicion = localise.spread(bench.source, lines)
    found: dict[Key, tuple[float, Edit]] = {}
    places: dict[Key, ast.AST] = {}
    for node in bench.source.nodes:
        statement = bench.source.statement(node)
        score = suspicion.get(statement, 0.0)
        if score <= 0 and ops_names.may_define(bench, node):
            score = NOBODY_RUNS
        if score <= 0 or not _editable(bench.source, node):
            continue
        for at, edit in enumerate(edits_of(bench, node)):
            place = max(score, _floor(edit)) if edit.hinted else score
            key = (edit.start, edit.end, edit.new)
            value = place * edit.prior * CROWD**at
            if key not in found or found[key][0] < value:
                found[key], places[key] = (value, edit), statement
    return list(_taking_turns(found, places))


def _taking_turns(
    found: Mapping[Key, tuple[float, Edit]], places: Mapping[Key, ast.AST]
) -> Iterator[tuple[float, Edit]]:
    """A table of hundreds of words is one statement: others are tried before its last word."""
    turns: Counter[ast.AST] = Counter()
    for key in sorted(found, key=lambda key: (-found[key][0], key)):
        value, edit = found[key]
        yield value * TURN ** turns[places[key]], edit
        turns[places[key]] += 1


def _floor(edit: Edit) -> float:
    return 1.0 if edit.prior >= CERTAIN else HINTED_FLOOR


def _editable(source: Source, node: ast.AST) -> bool:
    if source.is_annotation(node):
        return False
    return not source.in_fstring(node) or source.trusted(node)


def edits_of(bench: Bench, node: ast.AST) -> Iterator[Edit]:
    for kind in KINDS:
        try:
            yield from kind(bench, node)
        except (AttributeError, IndexError, UnicodeError):
            continue  # a node without a place, as older Pythons have inside f-strings


def valid(source: Source, edit: Edit) -> bool:
    """It parses, and says something else than before."""
    text = edit.applied(source.text)
    return parses(text) and ast.dump(ast.parse(text)) != source.dump
