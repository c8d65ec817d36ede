"""How suspicious each line is: the failing test runs it and passing tests do not."""

from __future__ import annotations

import ast
import math
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from mngr_mechanic.program import project
from mngr_mechanic.program.lab import Lab
from mngr_mechanic.program.probe import mechanic_places, mechanic_trace
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.source import SourceFile

FRAME = re.compile(r'File "([^"\n]+)", line (\d+)')
Lines = frozenset[tuple[str, int]]  # (path in the project, line)
OWN = 0.5


@dataclass
class Coverage:
    by_test: dict[str, Lines] = field(default_factory=dict)
    last: dict[str, Lines] = field(default_factory=dict)
    """The lines of the process that each test started last."""

    def covering(self, path: str, lines: range) -> list[str]:
        """Return the tests that reach one of these lines."""
        wanted = {(path, line) for line in lines}
        return [test for test, reached in self.by_test.items() if reached & wanted]


def traced(lab: Lab, tests: list[str], seconds: float) -> tuple[dict[str, Result], Coverage]:
    """Run tests, and return their results and the lines that they run."""
    folder = tempfile.mkdtemp(prefix="trace-", dir=lab.base)
    run = lab.run(tests, seconds=seconds, trace=folder)
    return run.results, read(folder)


def read(folder: str) -> Coverage:
    """Return the lines that the traced processes wrote."""
    coverage = Coverage()
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        place = os.path.join(folder, name)
        if not os.path.exists(os.path.join(place, "test")):
            continue
        with open(os.path.join(place, "test"), encoding="utf-8") as file:
            test = file.read()
        names = sorted(each for each in os.listdir(place) if each != "test")
        parts = [frozenset(mechanic_trace.noted(os.path.join(place, each))) for each in names]
        coverage.by_test[test] = frozenset().union(*parts) if parts else frozenset()
        coverage.last[test] = parts[-1] if parts else frozenset()
    return coverage


def crash(result: Result, root: str) -> list[tuple[str, int]]:
    """Return the frames of the project's code in an uncaught exception, outermost first.

    They are of our process, or of a program that printed its traceback.
    """
    assert result.failure is not None
    printed = [part for each in result.commands for part in (each.stdout, each.stderr)]
    frames = [*result.failure.frames]
    frames += FRAME.findall("\n".join([result.failure.message, *printed]))
    places = [(mechanic_places.place(path, root), int(line)) for path, line in frames]
    return [each for each in places if each[0] and not project.is_test(each[0])]


def suspicion(
    test: str, coverage: Coverage, passing: list[str], frames: list[tuple[str, int]]
) -> dict[tuple[str, int], float]:
    """Return Ochiai's measure of each line, raised for the last process and for the crash."""
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
    """Return scores that prefer the lines given with the task, which compare all tests.

    A line that our test does not run cannot make it fail, if it is known what it runs. Our own
    scores compare it with few tests, and count for half.
    """
    mine = {place: score for place, score in told.items() if place in scores or not scores}
    if not mine:
        return dict(scores)
    best = max(mine.values()) or 1.0
    found = {place: OWN * score for place, score in scores.items()}
    return {**found, **{at: max(found.get(at, 0.0), mine[at] / best) for at in mine}}


def spread(source: SourceFile, lines: Mapping[int, float]) -> dict[ast.AST, float]:
    """Return the score of each statement, from its lines and from the users of names it defines.

    The top level of a module runs in every test, so its own lines say nothing.
    """
    scores: dict[ast.AST, float] = {}
    for node in source.nodes:
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            span = source.statement_lines(node)
            scores[node] = max((lines.get(line, 0.0) for line in span), default=0.0)
    for node in source.nodes:  # defaults and decorators matter as much as the body does
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inside = [scores.get(each, 0.0) for each in source.inside(node) if each is not node]
            scores[node] = max([scores[node], *(0.8 * each for each in inside)])
    _definitions(source, scores)
    return scores


def _definitions(source: SourceFile, scores: dict[ast.AST, float]) -> None:
    users: dict[str, float] = {}
    for node in source.nodes:
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        if name:
            score = scores.get(source.statement(node), 0.0)
            users[name] = max(users.get(name, 0.0), score)
    for statement in source.nodes:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        if isinstance(source.parents[statement], (ast.Module, ast.ClassDef)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = [getattr(each, "id", "") for one in targets for each in ast.walk(one)]
            score = max((users.get(name, 0.0) for name in names), default=0.0)
            scores[statement] = max(scores.get(statement, 0.0), 0.7 * score)
