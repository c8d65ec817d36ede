"""Verify the tests that an agent wrote for `sync`, in a clean checkout."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mngr.errors import MngrError, UsageError
from mngr_e2e.blocks import Block
from mngr_tutorial.checking import Problem, check, uncovered
from mngr_tutorial.citations import Citation, TestKey
from mngr_tutorial.evidence import read_result
from mngr_tutorial.project import Project, find_project
from mngr_tutorial.trials import Throwaway

RUN, NOOP = "sync", "sync-noop"


@dataclass(frozen=True)
class SyncTask:
    """The task of an agent."""

    blocks: list[Block]
    """Blocks without a test."""
    stale: list[Problem]
    """Tests that cite a block that does not exist."""


@dataclass(frozen=True)
class Verification:
    """The result of checking an agent's commits."""

    wanted: int
    """Number of blocks and stale tests of the task."""
    verified: int
    """Number of those without a problem."""
    tests: list[str]
    """Node ids of the tests that were run."""
    problems: list[Problem]


def verify(
    project: Project, wanted: SyncTask, base: str, head: str, timeout: float
) -> Verification:
    """Check that each block is cited by tests that pass, fail if no command runs, and ran it."""
    with Throwaway(project.root) as world:
        copy = world.base / "checkout"
        _checkout(world, project.top, copy, head)
        theirs = _there(project, copy)
        problems = _outside(world, project, copy, base, head)
        spoilt = bool(problems)
        cited = _cited(theirs, copy)
        targets = [{e.test for e in cited if e.block == block.text} for block in wanted.blocks]
        bare = [block for block, tests in zip(wanted.blocks, targets, strict=True) if not tests]
        problems += uncovered(project, bare)
        targets += [{stale.key} for stale in wanted.stale]
        concerned = {test for tests in targets for test in tests}
        lines = {each.test: each.line for each in reversed(cited) if each.test in concerned}
        problems += _outcomes(world, project, theirs, lines, timeout)
        proven = [each for each in check(theirs).problems if each.kind != "unproven"]
        problems += [each for each in proven if each.key in concerned]
    bad = {each.key for each in problems}
    verified = sum(bool(tests) and not tests & bad for tests in targets)
    nodes = sorted(map(_node, lines))
    return Verification(len(targets), 0 if spoilt else verified, nodes, problems)


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


def _outside(world: Throwaway, project: Project, copy: Path, base: str, head: str) -> list[Problem]:
    """Return problems for changed files outside the tests, such as the program itself."""
    done = world.run(f"git diff --name-only -z {base} {head}", 60, cwd=copy)
    if done.exit_code:
        raise MngrError(f"cannot compare {base[:12]} with {head[:12]}: {world.output(done)}")
    places = [(copy / project.inside / project.named(place)) for place in project.tests]
    changed = [copy / name for name in done.stdout.split("\0") if name]
    odd = [path for path in changed if not any(map(path.is_relative_to, places))]
    told = "changed outside the tests"
    return [Problem("outside", str(path.relative_to(copy)), 1, told) for path in odd]


def _cited(theirs: Project, copy: Path) -> list[Citation]:
    try:
        return check(theirs, evidence=False).citations
    except UsageError as error:  # a test file is not valid Python
        raise MngrError(str(error).replace(f"{copy}/", "")) from None


def _node(test: TestKey) -> str:
    path, name = test
    return "::".join([path, *name.split(".")])


def _outcomes(
    world: Throwaway, project: Project, theirs: Project, lines: dict[TestKey, int], timeout: float
) -> Iterator[Problem]:
    """Yield a problem for each test that does not pass, or passes without its commands."""
    nodes = sorted(map(_node, lines))
    passed = _run(world, project, theirs, nodes, RUN, timeout) if nodes else {}
    hollow = _run(world, project, theirs, nodes, NOOP, timeout) if nodes else {}
    for test, line in sorted(lines.items()):
        path, name = test
        seen = set(passed.get(test, ["not collected"]))
        if seen != {"passed"}:
            said = ", ".join(sorted(seen - {"passed"}))
            yield Problem("failed", path, line, f"{name}: {said}", name)
        elif "passed" in hollow.get(test, []):
            said = f"{name} also passes when no command does anything"
            yield Problem("hollow", path, line, said, name)


def _run(
    world: Throwaway, project: Project, theirs: Project, nodes: list[str], run: str, timeout: float
) -> dict[TestKey, list[str]]:
    """Run tests; return the outcomes of all parameters by test, without tests that did not run."""
    noop = "1" if run == NOOP else ""
    argv = [*pytest_argv(project), "-q", "--rootdir", str(theirs.root), *nodes]
    words = " ".join(map(shlex.quote, argv))
    env = {"MNGR_E2E_RUN": run, "MNGR_E2E_NOOP": noop}
    done = world.run(words, timeout, cwd=theirs.root, **env)
    found: dict[TestKey, list[str]] = {}
    for path in (theirs.artifacts / run).glob("*/result.json"):
        if result := read_result(path):
            found.setdefault(result.test, []).append(result.outcome)
    if not found and run == RUN:
        last = world.output(done).replace(f"{theirs.root}/", "").strip()[-1000:]
        raise MngrError(f"the tests could not be run: {last}")
    return found


def pytest_argv(project: Project) -> list[str]:
    """Return the project's own pytest, or mngr's if it has none."""
    own = project.root / ".venv" / "bin" / "python"
    return [str(own) if own.exists() else sys.executable, "-m", "pytest"]
