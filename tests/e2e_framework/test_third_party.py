"""The framework as it is, on three command lines that we did not write."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mngr_tutorial.checking import check
from mngr_tutorial.project import find_project
from tests.e2e_framework.project import Project

HERE = Path(__file__).parent / "third_party"
REQUIREMENTS = HERE / "requirements.txt"
COMPLETE = "complete"
PROGRAMS = {"codespell": "codespell", "dotenv": "dotenv", "sqlite_utils": "sqlite-utils"}


def cache() -> Path:
    """Kept from run to run: only the first needs a network."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    wanted = REQUIREMENTS.read_bytes() + sys.version.encode()
    return Path(base, "mngr-tests", f"third-party-{hashlib.sha256(wanted).hexdigest()[:12]}")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Another worker, or another run, may want the same at this moment."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs. Scripts name their interpreter by its full path, so they are
    installed where they stay; a file says that it was done to the end."""
    folder = cache()
    with alone(folder):
        if not (folder / COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            (folder / COMPLETE).touch()
    return folder / "bin"


def install(folder: Path) -> None:
    venv.create(folder, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    options = ["--quiet", "--no-deps", "--disable-pip-version-check"]
    argv = [*pip, "install", *options, "-r", str(REQUIREMENTS)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


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
