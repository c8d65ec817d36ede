"""Test tests/support/skips.py on a small suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import plugins

SUITE = {
    "test_one.py": """
import pytest

def test_skips():
    pytest.skip("no docker here")

@pytest.mark.xfail(strict=True)
def test_fails_as_expected():
    assert False
""",
    "test_two.py": "import pytest\npytest.importorskip('no_such_module')\n",
}


def run_suite(folder: Path, ci: str, workers: int) -> subprocess.CompletedProcess[str]:
    rule = Path(__file__).with_name("skips.py")
    (folder / "conftest.py").write_bytes(rule.read_bytes())
    for name, text in SUITE.items():
        (folder / name).write_text(text)
    options = ["-p", "no:cacheprovider", *plugins.OPTIONS, "-n", str(workers)]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={**kept, "CI": ci},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("workers", [0, 1])
def test_skipped_tests_and_modules_fail_the_run_in_ci(tmp_path: Path, workers: int) -> None:
    result = run_suite(tmp_path, ci="true", workers=workers)
    assert result.returncode == 1
    assert "test_one.py::test_skips: Skipped: no docker here" in result.stdout
    assert "test_two.py: Skipped: could not import 'no_such_module'" in result.stdout
    assert "test_fails_as_expected" not in result.stdout


def test_skips_are_allowed_outside_ci(tmp_path: Path) -> None:
    result = run_suite(tmp_path, ci="", workers=0)
    assert result.returncode == 0
    assert "fails the run" not in result.stdout
