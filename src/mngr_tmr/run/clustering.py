"""Group failing tests that probably have one cause, and find the suspicious lines. Pure.

A cluster has failures with one signature, cases of one parametrised test with the same exception,
tests that execute a line which hardly any passing test executes, and tests whose most suspicious
lines are mostly the same.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mngr_tmr.probes.lines import ranges

Line = tuple[str, int]
Lines = frozenset[Line]
TOP = 15
"""Entries of suspicious lines in the prompt of an agent."""
FIRST, SAME = 10, 0.6
"""Number of suspicious lines to compare, and the share that must be the same."""
MOSTLY = 2
"""A line joins tests if more than this many times as many failing as passing tests run it."""


@dataclass(frozen=True)
class Suspect:
    """Lines of one file that failing tests execute."""

    path: str
    lines: str
    """As 1-3,7."""
    score: float
    """Ochiai's measure: 1 if all failing tests and no passing test execute the lines."""
    failing: int
    passing: int


@dataclass(frozen=True)
class FailingTest:
    """A failing test, with what is known about its cause."""

    id: str
    node_id: str
    signature: str
    exception: str
    seconds: float = 0.0
    lines: Lines = frozenset()
    """The lines of the implementation that it executes; none if not measured."""

    @property
    def function(self) -> str:
        return self.node_id.partition("[")[0]

    @property
    def effort(self) -> tuple[float, int, float, str]:
        """Return the sort key of canaries: fast tests that execute few lines come first."""
        return (round(self.seconds, 1), len(self.lines), self.seconds, self.node_id)


Cluster = tuple[FailingTest, ...]
"""The best canary first."""


def clusters(failures: Sequence[FailingTest], passing: Sequence[Lines] = ()) -> list[Cluster]:
    """Return the clusters, in the order of their first members."""
    found = units(failures)
    if passing:
        passed = Counter(line for lines in passing for line in lines)
        found = _coinciding(_sharing_a_line(found, passed), passed)
    return [tuple(sorted(each, key=lambda failure: failure.effort)) for each in found]


def units(failures: Iterable[FailingTest]) -> list[list[FailingTest]]:
    """Group failures by signature, and parametrised ones by function and exception."""
    groups: list[list[FailingTest]] = []
    known: dict[Hashable, list[FailingTest]] = {}
    for failure in failures:
        keys: list[Hashable] = [failure.signature] if failure.signature else []
        if "[" in failure.node_id and failure.exception:
            keys.append((failure.function, failure.exception))
        mine = {id(known[key]): known[key] for key in keys if key in known}
        group = next(iter(mine.values()), [])
        for other in list(mine.values())[1:]:
            group += other
            groups.remove(other)
            known |= {key: group for key, value in known.items() if value is other}
        if not group:
            groups.append(group)
        group.append(failure)
        known |= dict.fromkeys(keys, group)
    return groups


def _sharing_a_line(
    groups: list[list[FailingTest]], passed: Counter[Line]
) -> list[list[FailingTest]]:
    """Join groups whose tests run the most suspicious line, as long as there is one."""
    found: list[list[FailingTest]] = []
    left = groups
    while left:
        line = _joining(left, passed)
        joined = [group for group in left if line is not None and _runs(group, line)]
        if len(joined) < 2:
            break
        found.append([failure for group in joined for failure in group])
        left = [group for group in left if group not in joined]
    return found + left


def _coinciding(groups: list[list[FailingTest]], passed: Counter[Line]) -> list[list[FailingTest]]:
    """Join groups whose suspicious lines are mostly the same."""
    found: list[tuple[set[Line], list[FailingTest]]] = []
    for group in groups:
        mine = _most_suspicious(group, passed)
        known = next((each for each in found if _overlap(each[0], mine)), None)
        if known is None:
            found.append((mine, [*group]))
        else:
            known[1].extend(group)
    return [group for _, group in found]


def _most_suspicious(group: Sequence[FailingTest], passed: Counter[Line]) -> set[Line]:
    """Return the first lines, without those less than half as suspicious as the first."""
    scored = _scored(group, passed)[:FIRST]
    return {line for line, score, *_ in scored if 2 * score >= scored[0][1]}


def _overlap(one: set[Line], two: set[Line]) -> bool:
    shorter = min(len(one), len(two))
    return bool(shorter) and len(one & two) >= SAME * shorter


def _joining(groups: Sequence[Sequence[FailingTest]], passed: Counter[Line]) -> Line | None:
    """Return the most suspicious line that several groups and mostly failing tests run."""
    members = [failure for group in groups for failure in group]
    failed = Counter(line for failure in members for line in failure.lines)
    several = Counter(line for group in groups for line in _of(group))
    fitting = [
        line for line, n in failed.items() if n > MOSTLY * passed[line] and several[line] > 1
    ]
    return max(
        fitting,
        key=lambda line: (ochiai(failed[line], passed[line], len(members)), line),
        default=None,
    )


def _of(group: Sequence[FailingTest]) -> set[Line]:
    return {line for failure in group for line in failure.lines}


def _runs(group: Sequence[FailingTest], line: Line) -> bool:
    return 2 * sum(line in failure.lines for failure in group) >= len(group)


# suspicion


def ochiai(failing: int, passing: int, all_failing: int) -> float:
    return failing / math.sqrt(all_failing * (failing + passing)) if failing else 0.0


def suspects(cluster: Sequence[FailingTest], passed: Mapping[Line, int]) -> tuple[Suspect, ...]:
    """Return the most suspicious lines first, one entry for lines that the same tests run."""
    groups: dict[tuple[float, str, int, int], list[int]] = {}
    for (path, line), score, failing, passing in _scored(cluster, passed):
        groups.setdefault((score, path, failing, passing), []).append(line)
    found = [
        Suspect(path, ranges(lines), score, failing, passing)
        for (score, path, failing, passing), lines in groups.items()
    ]
    return tuple(found[:TOP])


def _scored(
    cluster: Sequence[FailingTest], passed: Mapping[Line, int]
) -> list[tuple[Line, float, int, int]]:
    """Return (line, score, failing tests, passing tests), the most suspicious first."""
    failed = Counter(line for failure in cluster for line in failure.lines)
    found = []
    for line, failing in failed.items():
        passing = passed.get(line, 0)
        score = round(ochiai(failing, passing, len(cluster)), 3)
        found.append((line, score, failing, passing))
    return sorted(found, key=lambda each: (-each[1], each[0]))


def reached(
    lines: Mapping[str, Lines], tests: Collection[str], is_implementation: Callable[[str], bool]
) -> dict[str, Lines]:
    """Return the lines of the implementation that each of these tests executes."""
    kept: dict[str, bool] = defaultdict(bool)
    for path in {path for test in tests for path, _ in lines.get(test, ())}:
        kept[path] = is_implementation(path)
    return {
        test: frozenset(line for line in lines[test] if kept[line[0]])
        for test in tests
        if test in lines
    }
