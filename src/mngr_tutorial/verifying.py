"""Verify the tests that an agent wrote for `sync`, in a clean checkout."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from mngr.errors import MngrError, UsageError
from mngr_e2e.blocks import Block
from mngr_tutorial.checking import CheckResult, Problem, check
from mngr_tutorial.citations import Citation
from mngr_tutorial.project import Project, find_project
from mngr_tutorial.trials import Throwaway

RUN, NOOP = "sync", "sync-noop"


@dataclass(frozen=True)
class SyncTask:
    """The task of an agent."""

    blocks: list[Block]
    """Blocks that need tests."""
    stale: list[Problem]
    """Tests that cite a block that does not exist."""


@dataclass
class SyncResult:
    """A block or a stale test, the tests that it has now, and their problems."""

    what: str
    line: int
    tests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.problems


def verify(
    project: Project, wanted: SyncTask, base: str, head: str, timeout: float
) -> list[SyncResult]:
    """Return a verdict per block: cited by tests that pass, fail if no command runs, and ran it."""
    with Throwaway(project.root) as world:
        copy = world.base / "checkout"
        _checkout(world, project.top, copy, head)
        theirs = _there(project, copy)
        strange = _strange(world, project, copy, base, head)
        try:
            report = check(theirs, evidence=False)
        except UsageError as error:  # a test file is not valid Python
            raise MngrError(str(error).replace(f"{copy}/", "")) from None
        found = [_cited(theirs, report, block) for block in wanted.blocks]
        found += [_mended(theirs, report, problem) for problem in wanted.stale]
        nodes = sorted({node for each in found for node in each.tests})
        if nodes:
            passed = _run(world, project, theirs, nodes, RUN, timeout)
            hollow = _run(world, project, theirs, nodes, NOOP, timeout)
            for each in found:
                each.problems += _outcomes(each.tests, passed, hollow)
        _unproven(theirs, found)
    for each in found:
        each.problems += strange
    return found


def _checkout(world: Throwaway, top: Path, copy: Path, head: str) -> None:
    """Clone the repository by sharing its objects, which changes nothing in it."""
    where = f"{shlex.quote(str(top))} {shlex.quote(str(copy))}"
    clone = f"git clone -q --shared --no-checkout {where}"
    done = world.run(f"{clone} && git -C {shlex.quote(str(copy))} checkout -q --detach {head}", 600)
    if done.exit_code:
        raise MngrError(f"cannot check out {head[:12]}: {world.output(done).strip()}")


def _there(project: Project, copy: Path) -> Project:
    """Return the same project in the checkout."""
    root = copy / project.inside
    tests = [project.named(place) for place in project.tests]
    return find_project(root, tests)


def _strange(world: Throwaway, project: Project, copy: Path, base: str, head: str) -> list[str]:
    """Return problems for changed files outside the tests, such as the program itself."""
    done = world.run(f"git diff --name-only -z {base} {head}", 60, cwd=copy)
    if done.exit_code:
        raise MngrError(f"cannot compare {base[:12]} with {head[:12]}: {world.output(done)}")
    places = [(copy / project.inside / project.named(place)) for place in project.tests]
    changed = [copy / name for name in done.stdout.split("\0") if name]
    odd = [path for path in changed if not any(_is_in(path, place) for place in places)]
    return [f"changed outside the tests: {path.relative_to(copy)}" for path in odd]


def _is_in(path: Path, place: Path) -> bool:
    return path == place or path.is_relative_to(place)


def _cited(project: Project, report: CheckResult, block: Block) -> SyncResult:
    citing = [each for each in report.citations if each.block == block.text]
    nodes = sorted({_node(project, each) for each in citing})
    found = SyncResult(block.caption, block.line, nodes)
    if not citing:
        found.problems.append("no test cites it")
    return found


def _mended(project: Project, report: CheckResult, stale: Problem) -> SyncResult:
    """Return the verdict on a stale test; removing it is as good as updating it."""
    left = [each for each in report.problems if _same(each, stale)]
    tests = [each for each in report.citations if each.test == stale.test]
    nodes = sorted({_node(project, each) for each in tests if _at(project, each) == stale.path})
    return SyncResult(
        f"{stale.path}: {stale.test}", stale.line, nodes, [str(each) for each in left]
    )


def _same(one: Problem, other: Problem) -> bool:
    return (one.kind, one.path, one.test) == (other.kind, other.path, other.test)


def _at(project: Project, citation: Citation) -> str:
    return project.named(citation.path)


def _node(project: Project, citation: Citation) -> str:
    return "::".join([project.named(citation.path), *citation.test.split(".")])


def _run(
    world: Throwaway, project: Project, theirs: Project, nodes: list[str], run: str, timeout: float
) -> dict[str, list[str]]:
    """Run tests; return the outcomes of all parameters by test, without tests that did not run."""
    noop = "1" if run == NOOP else ""
    argv = [*pytest_argv(project), "-q", "--rootdir", str(theirs.root), *nodes]
    words = " ".join(map(shlex.quote, argv))
    env = {"MNGR_E2E_RUN": run, "MNGR_E2E_NOOP": noop}
    done = world.run(words, timeout, cwd=theirs.root, **env)
    found: dict[str, list[str]] = {}
    for path in (theirs.artifacts / run).glob("*/result.json"):
        result = json.loads(path.read_text(encoding="utf-8"))
        node = str(result["node_id"]).partition("[")[0]
        found.setdefault(node, []).append(str(result["outcome"]))
    if not found and run == RUN:
        last = world.output(done).replace(f"{theirs.root}/", "").strip()[-1000:]
        raise MngrError(f"the tests could not be run: {last}")
    return found


def pytest_argv(project: Project) -> list[str]:
    """Return the project's own pytest, or ours if it has none."""
    own = project.root / ".venv" / "bin" / "python"
    return [str(own) if own.exists() else sys.executable, "-m", "pytest"]


def _outcomes(
    tests: Iterable[str], passed: dict[str, list[str]], hollow: dict[str, list[str]]
) -> list[str]:
    problems = []
    for test in tests:
        seen = passed.get(test, ["not collected"])
        if set(seen) != {"passed"}:
            problems.append(f"{test}: {', '.join(sorted(set(seen) - {'passed'}))}")
        elif set(hollow.get(test, [])) & {"passed"}:
            problems.append(f"{test} also passes when no command does anything")
    return problems


def _unproven(theirs: Project, found: list[SyncResult]) -> None:
    """Add what `check` reports about these tests after they have run."""
    problems = check(theirs).problems
    for each in found:
        names = {test.partition("::")[2].replace("::", ".") for test in each.tests}
        mine = [p for p in problems if p.test in names and p.kind != "unproven"]
        each.problems += [str(problem) for problem in mine]
