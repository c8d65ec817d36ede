"""How suspicious each line is: what the failing test runs and passing tests do not."""

from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from mngr_mechanic.program import project
from mngr_mechanic.program.probe import mechanic_places
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.source import Source

FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
Lines = frozenset[tuple[str, int]]  # (path in the project, line)
OWN = 0.5


@dataclass
class Coverage:
    by_test: dict[str, Lines] = field(default_factory=dict)
    last: dict[str, Lines] = field(default_factory=dict)
    """Of a test, what the process ran that it started last."""

    def covering(self, path: str, lines: range) -> list[str]:
        """Tests that reach one of these lines."""
        wanted = {(path, line) for line in lines}
        return [test for test, reached in self.by_test.items() if reached & wanted]


def read(folder: str) -> Coverage:
    """What the traced processes wrote."""
    coverage = Coverage()
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        place = os.path.join(folder, name)
        if not os.path.exists(os.path.join(place, "test")):
            continue
        with open(os.path.join(place, "test"), encoding="utf-8") as file:
            test = file.read()
        parts = [
            _lines(os.path.join(place, each))
            for each in sorted(os.listdir(place))
            if each != "test"
        ]
        coverage.by_test[test] = frozenset().union(*parts) if parts else frozenset()
        coverage.last[test] = parts[-1] if parts else frozenset()
    return coverage


def _lines(path: str) -> Lines:
    found = set()
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            number, tab, name = line.rstrip("\n").partition("\t")
            if tab and number.isdigit():
                found.add((name, int(number)))
    return frozenset(found)


def frames_in(text: str, root: str) -> list[tuple[str, int]]:
    """Tracebacks that programs printed, as places in the project, outermost first."""
    places = [(mechanic_places.place(path, root), int(line)) for path, line in FRAME.findall(text)]
    return [place for place in places if place[0]]


def crash(result: Result, root: str) -> list[tuple[str, int]]:
    """Where the project's own code raised what nobody caught, outermost first.

    In our process, or in a program that printed its traceback.
    """
    assert result.failure is not None
    named = [(mechanic_places.place(path, root), line) for path, line in result.failure.frames]
    frames = [frame for frame in named if frame[0]]
    printed = [part for each in result.commands for part in (each.stdout, each.stderr)]
    frames += frames_in("\n".join([result.failure.message, *printed]), root)
    return [frame for frame in frames if not project.is_test(frame[0])]


def suspicion(
    test: str, coverage: Coverage, passing: list[str], frames: list[tuple[str, int]]
) -> dict[tuple[str, int], float]:
    """Ochiai's measure for one failing test, more for where it crashed and for the last process."""
    reached = coverage.by_test.get(test, frozenset())
    others = [coverage.by_test[name] for name in passing if name in coverage.by_test]
    scores = {}
    for place in reached:
        score = 1 / math.sqrt(1 + sum(place in other for other in others))
        scores[place] = score * (1.2 if place in coverage.last.get(test, ()) else 1.0)
    for depth, place in enumerate(reversed(frames[-6:])):
        scores[place] = max(scores.get(place, 0.3), 0.3) * (2.5 / (1 + 0.3 * depth))
    return scores


def preferred(
    scores: Mapping[tuple[str, int], float], told: Mapping[tuple[str, int], float]
) -> dict[tuple[str, int], float]:
    """With the lines first that a comparison of all tests found suspicious, if there was one.

    A line that our test does not run cannot be what it fails for, if it is known what it runs.
    Our own scores compare it with few tests, and count for half.
    """
    mine = {place: score for place, score in told.items() if place in scores or not scores}
    if not mine:
        return dict(scores)
    best = max(mine.values()) or 1.0
    found = {place: OWN * score for place, score in scores.items()}
    return {**found, **{at: max(found.get(at, 0.0), mine[at] / best) for at in mine}}


def spread(source: Source, lines: Mapping[int, float]) -> dict[ast.AST, float]:
    """From lines to statements; and from the users of a name to where it is defined.

    What stands at the top of a module runs in every test, so its own lines say nothing.
    """
    scores: dict[ast.AST, float] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            span = source.statement_lines(node)
            scores[node] = max((lines.get(line, 0.0) for line in span), default=0.0)
    _heads_of_functions(source, scores)
    _definitions(source, scores)
    return scores


def _heads_of_functions(source: Source, scores: dict[ast.AST, float]) -> None:
    """Defaults and decorators matter as much as the body does."""
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = [scores.get(each, 0.0) for each in ast.walk(node) if each is not node]
            scores[node] = max([scores[node], *(0.8 * each for each in inside)])


def _definitions(source: Source, scores: dict[ast.AST, float]) -> None:
    users: dict[str, float] = {}
    for node in ast.walk(source.tree):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        if name:
            score = scores.get(source.statement(node), 0.0)
            users[name] = max(users.get(name, 0.0), score)
    for holder in ast.walk(source.tree):
        if isinstance(holder, (ast.Module, ast.ClassDef)):
            for statement in holder.body:
                for name in _bound(statement):
                    known = scores.get(statement, 0.0)
                    scores[statement] = max(known, 0.7 * users.get(name, 0.0))


def _bound(statement: ast.stmt) -> list[str]:
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [
            node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name)
        ]
    return []
