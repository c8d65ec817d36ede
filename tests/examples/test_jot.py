"""The example project: green as it is, and broken in exactly the planned ways by the planting."""

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
from mngr_tmr.cli import planting

ROOT = Path(__file__).resolve().parents[2]
JOT = ROOT / "examples" / "jot"
PLANTER = ROOT / "scripts" / "plant_defects.py"
LEFT_BY_RUNS = shutil.ignore_patterns("__pycache__", ".*_cache", ".mngr-e2e")


def results(project: Path, run: str, **env: str) -> dict[str, dict[str, Any]]:
    """Run the project's own tests in a process of their own; what each left, by node id."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "MNGR_E2E_", "COV_", "COVERAGE_"))
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "no:hypothesispytest"]
    path = os.pathsep.join([str(project / "src"), str(ROOT / "src")])
    done = subprocess.run(
        command,
        cwd=project,
        env={**clean, "PYTHONPATH": path, "MNGR_E2E_RUN": run, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )
    # 0 and 1: the tests ran. Anything else is a broken project, not a failing test.
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert " error" not in done.stdout.splitlines()[-1], done.stdout
    files = (project / ".mngr-e2e" / run).glob("*/result.json")
    found = (json.loads(file.read_text()) for file in files)
    return {result["node_id"]: result for result in found}


def with_outcome(found: dict[str, dict[str, Any]], outcome: str) -> list[str]:
    return sorted(test for test, result in found.items() if result["outcome"] == outcome)


def plant(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PLANTER, out], capture_output=True, text=True)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        shutil.copytree(JOT, tmp_path_factory.mktemp("pristine") / "jot", ignore=LEFT_BY_RUNS)
    )


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("planted") / "jot"
    done = plant(out)
    assert done.returncode == 0, done.stderr
    return out, json.loads(done.stdout)


def of_kind(manifest: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [defect for defect in manifest["defects"] if defect["kind"] == kind]


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
        # Not merely alike: a test of the tutorial runs the very commands that stand there.
        assert set(block.commands) <= set(texts)


def test_every_pristine_test_fails_when_nothing_is_run(pristine: Path) -> None:
    found = results(pristine, "noop", MNGR_E2E_NOOP="1")
    assert found
    assert with_outcome(found, "failed") == sorted(found)


@pytest.mark.soak
def test_exactly_the_planned_tests_fail_once_defects_are_planted(
    planted: tuple[Path, dict[str, Any]],
) -> None:
    project, manifest = planted
    blocked = {
        test
        for defect in of_kind(manifest, "blocked test")
        if shutil.which(defect["needs"])  # installed here after all
        for test in defect["tests"]
    }
    failed = with_outcome(results(project, "planted"), "failed")
    assert failed == [test for test in manifest["failing"] if test not in blocked]


def test_exactly_the_weak_tests_pass_when_nothing_is_run(
    planted: tuple[Path, dict[str, Any]],
) -> None:
    project, manifest = planted
    weak = [test for defect in of_kind(manifest, "weak test") for test in defect["tests"]]
    found = results(project, "noop", MNGR_E2E_NOOP="1")
    assert with_outcome(found, "passed") == sorted(weak)


def test_the_planned_defects_are_three_bugs_a_stale_four_weak_and_a_blocked_test(
    planted: tuple[Path, dict[str, Any]],
) -> None:
    project, manifest = planted
    kinds = {"bug": 3, "stale test": 1, "weak test": 4, "blocked test": 1}
    assert {kind: len(of_kind(manifest, kind)) for kind in kinds} == kinds
    assert len(manifest["defects"]) == sum(kinds.values())
    for defect in of_kind(manifest, "bug"):
        assert all(file.startswith("src/") for file in defect["files"])
    told = subprocess.run(
        ["git", "grep", "-i", "-l", "defect\\|planted"], cwd=project, capture_output=True, text=True
    )
    assert told.stdout == "", "the repository gives its defects away"


def test_planting_twice_gives_the_same_clean_commit(
    planted: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    again = plant(tmp_path / "again")
    assert json.loads(again.stdout) == planted[1]
    status = subprocess.run(
        ["git", "status", "--porcelain", "--ignored"],
        cwd=tmp_path / "again",
        capture_output=True,
        text=True,
    )
    assert (status.returncode, status.stdout) == (0, "")


def test_planting_leaves_a_directory_that_is_in_use_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("keep")
    done = plant(tmp_path)
    assert done.returncode == 1
    assert done.stderr == f"plant_defects: {tmp_path} is not empty\n"
    assert os.listdir(tmp_path) == ["mine"]


@pytest.mark.parametrize(("text", "times"), [("", 0), ("x = 1\nx = 1\n", 2)])
def test_a_defect_that_does_not_find_its_place_once_is_refused(text: str, times: int) -> None:
    defect = planting.Defect(
        "odd", "bug", "", (planting.Replacement("a.py", "x = 1", "x = 2"),), ()
    )
    with pytest.raises(planting.CannotPlant, match=rf"odd: a\.py has 'x = 1' {times} times"):
        planting.planted({"a.py": text}, [defect])
