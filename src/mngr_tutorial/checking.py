"""`mngr tutorial check`: compare the tutorial and the tests, in both directions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields

from mngr.cli.app.output import Row, one, rows
from mngr.cli.app.parser import Namespace
from mngr_e2e import blocks
from mngr_e2e.blocks import Block
from mngr_tutorial.citations import Citation, TestKey, read_citations
from mngr_tutorial.evidence import PastRuns
from mngr_tutorial.project import Project


@dataclass(frozen=True)
class Problem:
    """A difference between the tutorial and the tests."""

    kind: str
    """repeated, uncovered, unknown, unreadable, unproven or not_run; in `sync` also others."""
    path: str
    line: int
    message: str
    test: str = ""
    """The dotted name of a test in that file, as in `TestNotes.test_add`."""
    block: int = 0
    """The line of the block in the tutorial; 0 if the problem is not about a block."""

    @property
    def key(self) -> TestKey:
        return self.path, self.test

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class CheckResult:
    """The result of `check`."""

    blocks: list[Block]
    """The blocks that need a test."""
    citations: list[Citation]
    problems: list[Problem]

    @property
    def uncovered(self) -> list[Block]:
        cited = {citation.block for citation in self.citations}
        return [block for block in self.blocks if block.text not in cited]


def check(project: Project, evidence: bool = True) -> CheckResult:
    everything = project.blocks()
    cited = [
        each for path in project.test_files() for each in read_citations(path, project.named(path))
    ]
    needed = [block for block in everything if block.needs_test]
    report = CheckResult(needed, cited, [])
    report.problems.extend(_repeated(project, everything))
    report.problems.extend(uncovered(project, report.uncovered))
    report.problems.extend(_unknown(project, cited, everything))
    if evidence:
        report.problems.extend(_unproven(project, cited, needed))
    return report


def _repeated(project: Project, everything: list[Block]) -> Iterator[Problem]:
    for first, again in blocks.repeated(everything):
        said = f"the same block as at line {first.line}: {_short(again.caption)}"
        path = project.named(project.tutorial)
        yield Problem("repeated", path, again.line, said, block=again.line)


def uncovered(project: Project, blocks: Iterable[Block]) -> Iterator[Problem]:
    """Yield a problem for each of these blocks, which no test cites."""
    for block in blocks:
        said = f"no test cites this block: {_short(block.caption)}"
        path = project.named(project.tutorial)
        yield Problem("uncovered", path, block.line, said, block=block.line)


def _unknown(
    project: Project, cited: Iterable[Citation], everything: list[Block]
) -> Iterator[Problem]:
    known = {block.text for block in everything}
    for citation in cited:
        if citation.block is None:
            said = "the cited block is not plain text, so it cannot be compared"
            yield _problem("unreadable", citation, said)
        elif citation.block not in known:
            name = project.named(project.tutorial)
            said = f"cites a block that is not in {name}{_nearest(citation.block, everything)}"
            yield _problem("unknown", citation, said)


def _nearest(text: str, everything: list[Block]) -> str:
    near = difflib.get_close_matches(text, [block.text for block in everything], 1)
    if not near:
        return f": {_short(text)}"
    block = next(block for block in everything if block.text == near[0])
    pairs = zip([*text.split("\n"), ""], [*block.lines, ""], strict=False)
    ours, theirs = next(pair for pair in pairs if pair[0] != pair[1])
    return f"; the nearest, at line {block.line}, has {theirs!r} instead of {ours!r}"


def _unproven(
    project: Project, cited: Iterable[Citation], needed: list[Block]
) -> Iterator[Problem]:
    known = {block.text: block for block in needed}
    evidence = PastRuns(project.root, project.artifacts)
    for citation in cited:
        block = known.get(citation.block or "")
        if block is not None:
            yield from _not_run(project, citation, block, evidence)


def _not_run(
    project: Project, citation: Citation, block: Block, evidence: PastRuns
) -> Iterator[Problem]:
    name, texts = citation.test[1], evidence.commands(citation.test)
    if texts is None:
        changed = citation.test in evidence.stale
        said = "changed since it last ran" if changed else "has not been run"
        yield _problem("unproven", citation, f"{name} {said}", block.line)
        return
    where = f"{project.named(project.tutorial)}:{block.line}"
    for command in block.commands:
        if not blocks.ran(command, texts):
            said = f"{name} did not run {_short(command)!r} of {where}"
            yield _problem("not_run", citation, said, block.line)


def _problem(kind: str, citation: Citation, said: str, block: int = 0) -> Problem:
    path, name = citation.test
    return Problem(kind, path, citation.line, said, name, block)


def _short(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 80 else f"{line[:79]}…"


def show_problems(args: Namespace, problems: list[Problem], details: Row) -> None:
    """Print one line per problem, or, in JSON, the details and the problems."""
    if args.format == "human":
        for problem in problems:
            one(args, {}, str(problem))
    elif args.format == "json":
        one(args, {**details, "problems": [asdict(problem) for problem in problems]}, "")
    else:
        names = [field.name for field in fields(Problem)]
        rows(args, [asdict(problem) for problem in problems], [], fields=names)
