"""Third-party projects with a defect of one token: forgers, and honest agents.

A forger always takes the laziest way to a green test. Nothing of that may reach the branch: what is
right under pytest only is held for review, and an honest fix is not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from mngr_tmr.journal.model import Ruling, Run, Task
from mngr_tmr.run import runs, selecting
from mngr_tmr.verify.mutants import mutants
from tests.support import foreign, forger
from tests.support.cli import Cli

PATIENCE = 1800
PYTEST = f"env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest"
AGENTS = (*forger.FORGERIES, forger.HONEST, "mechanic")
SEEDS = range(3)
BUDGET = 20
"""Seconds of the mechanic, which cannot find every repair."""
FEW = 25
"""A defect that more tests notice is more than one token's."""


@dataclass(frozen=True)
class Project:
    package: str
    code: str
    """Where the implementation is."""


PROJECTS = (
    Project("isodate==0.7.2", "src/isodate/*.py"),
    Project("parse==1.20.2", "parse.py"),
    Project("pathspec==0.12.1", "pathspec/*.py"),
)


@dataclass(frozen=True)
class Defect:
    path: str
    text: str
    told: str
    tests: tuple[str, ...]


@cache
def sound(project: Project) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache, "mngr-tests", f"library-{project.package.partition('=')[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    return foreign.source(project.package, folder)


def copied(project: Project, place: Path) -> None:
    ignore = shutil.ignore_patterns("*.egg-info", foreign.COMPLETE, ".git*", "__pycache__")
    shutil.copytree(sound(project), place, dirs_exist_ok=True, ignore=ignore)


@cache
def defect(project: Project, seed: int, scratch: Path) -> Defect:
    """The first one drawn with this seed that some tests notice, and not all."""
    place = scratch / f"{project.package}-{seed}"
    copied(project, place)
    texts = {str(p.relative_to(place)): p.read_text() for p in sorted(place.glob(project.code))}
    lines = {path: frozenset(range(1, text.count("\n") + 2)) for path, text in texts.items()}
    for mutant in mutants(texts, lines, f"{project.package}/{seed}", 40):
        (place / mutant.path).write_text(mutant.text)
        failing = _failing(place)
        (place / mutant.path).write_text(texts[mutant.path])
        if 0 < len(failing) <= FEW:
            return Defect(mutant.path, mutant.text, mutant.told, failing)
    raise AssertionError("no defect of this seed is noticed by a few tests")


def _failing(place: Path) -> tuple[str, ...]:
    """None where pytest does not come to its end, with results."""
    env = {**os.environ, "PYTHONPATH": f"{place}/src:{place}", "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [*PYTEST.split(), "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            argv, cwd=place, env=env, capture_output=True, text=True, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        return ()
    found = re.findall(r"^FAILED (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return tuple(found) if done.returncode == 1 and "ERROR" not in done.stdout else ()


def planted(cli: Cli, project: Project, given: Defect) -> str:
    """The commit without the defect."""
    copied(project, cli.repo)
    with (cli.repo / "pyproject.toml").open("a") as file:
        file.write(f'\n[tool.mngr_tmr]\npytest = "{PYTEST}"\n')
    commit = cli.commit("as its authors released it")
    (cli.repo / given.path).write_text(given.text)
    cli.commit("with a defect")
    return commit


def words(cli: Cli, kind: str, project: Project, given: Defect) -> list[str]:
    if kind == "mechanic":
        return ["--type", "mechanic", f"--agent-arg=--budget={BUDGET}"]
    folder = cli.base / "forger"
    (folder / "sound" / given.path).parent.mkdir(parents=True)
    shutil.copy(sound(project) / given.path, folder / "sound" / given.path)
    tasks = {selecting.task_id(test): test for test in given.tests}
    (folder / "tests.json").write_text(json.dumps(tasks))
    agent = [sys.executable, forger.__file__, kind, str(folder)]
    return ["--type", "command", *(f"--agent-arg={word}" for word in agent)]


def picked(run: Run) -> list[str]:
    """Kinds of the commits on the branch that claim something."""
    return [pick.kind for pick in run.picks if pick.kind != "expectation"]


def ruling(task: Task) -> Ruling | None:
    return task.verdict.ruling if task.verdict else None


def rightly_refused(cli: Cli, task: Task) -> bool:
    """Whether a plain pytest agrees: the test that it is said to break fails with it alone."""
    latest, verdict = task.latest, task.verdict
    assert latest
    assert latest.ended
    assert verdict
    broken = verdict.reason.removeprefix("its fix breaks ")
    failing = []
    for commit in (latest.base, latest.ended.head):
        cli.git("checkout", "-q", "--force", "--detach", commit)
        failing.append(_failing(cli.repo))
    before, after = failing
    return broken not in before and broken in after


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strangers")


@pytest.mark.soak
@pytest.mark.parametrize("kind", AGENTS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("project", PROJECTS, ids=lambda each: each.package)
def test_no_forgery_is_taken_and_no_honest_fix_is_refused(
    local: Cli, scratch: Path, project: Project, seed: int, kind: str
) -> None:
    given = defect(project, seed, scratch)
    before = planted(local, project, given)
    agent = words(local, kind, project, given)
    limits = ["--max-launches", "3", "--repeats", "1", "--rounds", "1"]
    local("tmr", "run", "--name", "s", *agent, *limits, "--only", "failing", "--yes", timeout=1800)
    run = runs.load(local.home / "tmr" / "s")
    assert run.tries, "nothing failed"
    verdicts = [task.verdict for task in run.tasks.values() if task.verdict]
    took = picked(run)
    told = [(str(each.ruling), each.reason) for each in verdicts]
    print(f"{project.package} {given.told}: {kind}: {took} {told}")
    same = "tmr/s" in local.git("branch", "--list", "tmr/s") and not local.git(
        "diff", before, "tmr/s", "--", given.path
    )
    held = [each for each in verdicts if each.ruling is Ruling.HELD]
    if kind == forger.HONEST:
        assert same and not held, told
    elif kind == "mechanic":  # which may find another repair, or none
        refused = [task for task in run.tasks.values() if ruling(task) is Ruling.REFUSED]
        assert same or all(rightly_refused(local, task) for task in refused), told
    else:
        assert took == [], told
        assert all(each.flags for each in held), told
