"""Which lines of a Python CLI each test reaches, by the real coverage.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from coverage import CoverageData

from mngr_e2e.artifacts import slug
from tests.mngr_e2e.project import Project

CLI = """\
import signal
import subprocess
import sys

def main(word):
    if word == "add":
        print("added")
    elif word == "list":
        print("listed")
    elif word == "serve":
        print("serving", flush=True)
        signal.pause()
    elif word == "twice":
        subprocess.run([sys.executable, "-m", "tool", "add"])
        subprocess.run([sys.executable, "-m", "tool", "list"])

main(sys.argv[1])
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    (project.root / "tool").mkdir()
    (project.root / "tool" / "__init__.py").write_text("")
    (project.root / "tool" / "__main__.py").write_text(CLI)
    project.settings("coverage = ['tool']\nenv = {PYTHONPATH = '{root}'}")
    project.test("""
        def test_add(e2e): expect(e2e.run("python -m tool add").stdout).to_equal("added\\n")
        def test_list(e2e): expect(e2e.run("python -m tool list")).to_succeed()
        def test_twice(e2e): expect(e2e.run("python -m tool twice")).to_succeed()
        def test_serve(e2e):
            e2e.start("exec python -m tool serve").wait_for_output("serving")
        def test_nothing(e2e): pass
    """)
    return project


def said(project: Project, test: str) -> set[str]:
    """The words whose lines the test's own file says were reached."""
    path = project.runs[0] / slug(f"test_it.py::{test}") / "coverage"
    if not path.exists():
        return set()
    data = CoverageData(str(path))
    data.read()
    lines = data.lines(str(project.root / "tool" / "__main__.py")) or []
    text = CLI.split("\n")
    return {word for word in ("added", "listed", "serving") for n in lines if word in text[n - 1]}


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_each_test_has_a_coverage_file_of_its_own(
    project: Project, options: tuple[str, ...]
) -> None:
    done = project.pytest("-W", "error", *options, MNGR_E2E_COVERAGE="1")
    assert done.returncode == 0, done.stdout
    assert said(project, "test_add") == {"added"}
    assert said(project, "test_list") == {"listed"}
    assert said(project, "test_twice") == {"added", "listed"}
    assert said(project, "test_serve") == {"serving"}
    assert said(project, "test_nothing") == set()
    assert not list(project.runs[0].glob("*/coverage.*"))


def test_without_the_switch_nothing_is_measured(project: Project) -> None:
    done = project.pytest("-k", "add")
    assert done.returncode == 0, done.stdout
    assert not list(project.runs[0].glob("*/coverage*"))


def test_a_sitecustomize_of_the_project_runs_as_well(project: Project) -> None:
    own = "import os, sys\nsys.tracked = os.path.basename(__file__)\n"
    (project.root / "sitecustomize.py").write_text(own)
    project.test("""
        def test_add(e2e): expect(e2e.run("python -m tool add").stdout).to_equal("added\\n")
        def test_own(e2e):
            code = "import sys, sitecustomize as s; print(sys.tracked, s.__file__)"
            shown = e2e.run(f"python -c '{code}'").stdout
            expect(shown).to_match(r"^sitecustomize.py .*/project/sitecustomize.py$")
    """)
    done = project.pytest(MNGR_E2E_COVERAGE="1")
    assert done.returncode == 0, done.stdout
    assert said(project, "test_add") == {"added"}
