"""The example project passes its tests, and the planted defects break exactly the intended ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mngr_e2e import blocks
from mngr_tmr.cli import demo
from mngr_tmr.cli.demo_project import CannotPlant, plant
from tests.support import plugins
from tests.support.defects import BLOCKED, BUGS, DEFECTS, FAILING, WEAK

ROOT = Path(__file__).resolve().parents[2]
JOT = ROOT / "examples" / "jot"
LEFT_BY_RUNS = shutil.ignore_patterns("__pycache__", ".*_cache", ".mngr-e2e")


def results(project: Path, run: str, **env: str) -> dict[str, dict[str, Any]]:
    """Run the project's own tests in a separate process; return each result by node id."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "MNGR_E2E_", "COV_", "COVERAGE_"))
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugins.OPTIONS]
    path = os.pathsep.join([str(project / "src"), str(ROOT / "src")])
    done = subprocess.run(
        command,
        cwd=project,
        env={**clean, "PYTHONPATH": path, "MNGR_E2E_RUN": run, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    # 0 and 1 mean that the tests ran. Any other code means a broken project.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert " error" not in done.stdout.splitlines()[-1], done.stdout
    files = (project / ".mngr-e2e" / run).glob("*/result.json")
    found = (json.loads(file.read_text()) for file in files)
    return {result["node_id"]: result for result in found}


def with_outcome(found: dict[str, dict[str, Any]], outcome: str) -> list[str]:
    return sorted(test for test, result in found.items() if result["outcome"] == outcome)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        shutil.copytree(JOT, tmp_path_factory.mktemp("pristine") / "jot", ignore=LEFT_BY_RUNS)
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("planted") / "jot"
    plant(out)
    return out


def test_the_pristine_jot_is_green_and_its_tests_run_every_block(pristine: Path) -> None:
    found = results(pristine, "pristine")
    assert len(found) >= 40
    assert with_outcome(found, "passed") == sorted(found)
    tutorial = [
        block for block in blocks.parse((pristine / "tutorial.sh").read_text()) if block.needs_test
    ]
    assert len(tutorial) >= 20
    by_block = {result["block"]: result for result in found.values() if result["block"]}
    assert set(by_block) == {block.text for block in tutorial}
    for block in tutorial:
        texts = [command["text"] for command in by_block[block.text]["commands"]]
        # A test of the tutorial runs exactly the commands of its block.
        assert set(block.commands) <= set(texts)


def test_every_pristine_test_fails_when_nothing_is_run(pristine: Path) -> None:
    found = results(pristine, "noop", MNGR_E2E_NOOP="1")
    assert found
    assert with_outcome(found, "failed") == sorted(found)


@pytest.mark.soak
def test_exactly_the_planned_tests_fail_once_defects_are_planted(planted: Path) -> None:
    installed = [defect for defect in BLOCKED if shutil.which(defect.needs)]  # present here
    passing = {test for defect in installed for test in defect.tests}
    failed = with_outcome(results(planted, "planted"), "failed")
    assert failed == [test for test in FAILING if test not in passing]


def test_exactly_the_weak_tests_pass_when_nothing_is_run(planted: Path) -> None:
    weak = [test for defect in WEAK for test in defect.tests]
    found = results(planted, "noop", MNGR_E2E_NOOP="1")
    assert with_outcome(found, "passed") == sorted(weak)


def test_the_patch_has_the_planned_defects_and_the_repository_does_not_name_them(
    planted: Path,
) -> None:
    patch = (ROOT / "examples" / "jot-defects.patch").read_text()
    changed = {line.removeprefix("+++ b/") for line in patch.splitlines() if line[:4] == "+++ "}
    assert changed == {defect.file for defect in DEFECTS} | {"tutorial.sh"}
    assert all(defect.file.startswith("src/") for defect in BUGS)
    assert (len(FAILING), len(WEAK)) == (demo.FAILING, demo.WEAK)
    told = subprocess.run(
        ["git", "grep", "-i", "-l", "defect\\|planted"], cwd=planted, capture_output=True, text=True
    )
    assert told.stdout == "", "the repository gives its defects away"


def test_planting_twice_gives_the_same_clean_commit(planted: Path, tmp_path: Path) -> None:
    def git(*words: str, cwd: Path) -> str:
        done = subprocess.run(["git", *words], cwd=cwd, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    commit = plant(tmp_path / "again")
    assert commit == git("rev-parse", "HEAD", cwd=planted)
    assert git("status", "--porcelain", "--ignored", cwd=tmp_path / "again") == ""


def test_planting_leaves_a_directory_that_is_in_use_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    with pytest.raises(CannotPlant, match="is not empty"):
        plant(tmp_path)
    assert os.listdir(tmp_path) == ["mine"]
