"""The framework as it is, on three command lines that we did not write."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mngr_tutorial.checking import check
from mngr_tutorial.project import find_project
from tests.mngr_e2e.project import Project
from tests.support import foreign

HERE = Path(__file__).parent / "third_party"
REQUIREMENTS = HERE / "requirements.txt"
PROGRAMS = {"codespell": "codespell", "dotenv": "dotenv", "sqlite_utils": "sqlite-utils"}


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs; only its first making needs a network."""
    lines = REQUIREMENTS.read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    return foreign.environment("third-party", wanted) / "bin"


@pytest.fixture(params=PROGRAMS)
def project(request: pytest.FixtureRequest, tmp_path: Path, programs: Path) -> Project:
    """A copy: what a run leaves behind does not belong beside our tests."""
    name = str(request.param)
    assert (programs / PROGRAMS[name]).exists()
    shutil.copytree(HERE / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Project.existing(tmp_path / name, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")


def test_its_tutorial_is_tested(project: Project) -> None:
    done = project.pytest()
    assert done.returncode == 0, done.stdout
    results = project.results()
    assert len(results) == 10
    assert {result["outcome"] for result in results.values()} == {"passed"}
    report = check(find_project(project.root, []))
    assert len(report.blocks) == 10
    assert report.problems == []


def test_each_of_its_tests_proves_something(project: Project) -> None:
    project.pytest(MNGR_E2E_NOOP="1")
    outcomes = {name: result["outcome"] for name, result in project.results().items()}
    assert len(outcomes) == 10
    assert {name for name, outcome in outcomes.items() if outcome == "passed"} == set()
