"""`mngr demo`: its branch is compared with what was planted, by running what it changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_tmr.integrate.ranking import ending_of
from mngr_tmr.journal.model import Run
from mngr_tmr.probes import sources
from mngr_tmr.probes.reports import parse
from mngr_tmr.run import runs
from mngr_tmr.verify import checkout
from tests.support.cli import Cli
from tests.support.defects import BLOCKED, BUGS, DEFECTS, STALE, WEAK

# What the tests here look at is made once, by one of the workers, in two minutes.
pytestmark = pytest.mark.soak


class Demo:
    """What one `mngr demo` left behind."""

    def __init__(self, folder: Path, printed: str) -> None:
        self.folder, self.printed = folder, printed
        self.jot = folder / "jot"
        self.run: Run = runs.load(folder / "home/tmr/demo")

    def git(self, *args: str) -> str:
        done = subprocess.run(["git", *args], cwd=self.jot, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def results(self, *tests: str, noop: bool = False) -> dict[str, str]:
        """How tests end in the files as they are checked out now."""
        for name, data in sources(["probe"]).items():
            (self.folder / name).write_bytes(data)
        options = ["-q", "-p", "mngr_tmr_probe", "-p", "no:cacheprovider"]
        argv = [sys.executable, "-m", "pytest", *options, *tests]
        ours = {key: value for key, value in os.environ.items() if "XDIST" not in key}
        env = {**ours, "PYTHONPATH": str(self.folder)}
        orders = checkout.orders("nonce", (), {"MNGR_E2E_NOOP": "1"} if noop else {})
        done = subprocess.run(argv, cwd=self.jot, env=env, input=orders, capture_output=True)
        return {node: run.outcome for node, run in parse(done.stdout, "nonce").runs.items()}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    base = tmp_path_factory.mktemp("demo")
    cli = Cli(base / "world")
    done = subprocess.run(
        [*cli.argv("demo", str(base / "it"))],
        cwd=base,
        env=cli.env,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    yield Demo(base / "it", done.stdout)
    cli.env["MNGR_HOST_DIR"] = str(base / "it/home")
    cli.controller_home = cli.home = base / "it/home"
    cli.close()


def failing() -> list[str]:
    return [test for defect in (*BUGS, *STALE) for test in defect.tests]


def test_every_planted_defect_is_repaired_or_reported(demo: Demo) -> None:
    ends = {task.node_id: ending_of(task) for task in demo.run.tasks.values()}
    stale = {test for defect in STALE for test in defect.tests}
    for test in stale:
        assert ends[test] == "expectation changed"
    for test in {*failing()} - stale:
        assert ends[test] in ("fixed", "passes"), test
    for defect in WEAK:
        assert ends[defect.tests[0]] == "improved", defect.name
    for defect in BLOCKED:
        assert ends[defect.tests[0]] == "blocked"
        assert defect.needs in demo.printed


def test_nothing_else_was_touched(demo: Demo) -> None:
    planted_in = {defect.file for defect in DEFECTS}
    changed = demo.git("diff", "--name-only", "main", "tmr/demo").split()
    assert set(changed) <= planted_in
    kinds = [pick.kind for pick in demo.run.picks]
    repairs, changed_tests = ["implementation"] * len(BUGS), ["expectation"] * len(STALE)
    assert kinds == ["other", *repairs, *changed_tests]


def test_the_branch_passes_all_but_the_blocked_test(demo: Demo) -> None:
    demo.git("checkout", "-q", "--detach", "tmr/demo")
    results = demo.results()
    blocked = {test for defect in BLOCKED for test in defect.tests}
    assert {test for test, outcome in results.items() if outcome == "failed"} == blocked
    weak = [test for defect in WEAK for test in defect.tests]
    noop = demo.results(*weak, noop=True)
    assert set(noop.values()) == {"failed"}, "an improved test still proves nothing"


def test_reverting_a_repair_turns_its_tests_red_again(demo: Demo) -> None:
    repairs = [pick for pick in demo.run.picks if pick.kind == "implementation"]
    assert len(repairs) == len(BUGS)
    seen = set()
    for pick in repairs:
        demo.git("checkout", "-q", "--force", "--detach", "tmr/demo")
        demo.git("revert", "--no-commit", pick.commit)
        red = {test for test, outcome in demo.results(*failing()).items() if outcome == "failed"}
        defect = next(each for each in BUGS if set(each.tests) == red)
        seen.add(defect.name)
        demo.git("reset", "-q", "--hard")
    assert seen == {defect.name for defect in BUGS}


def test_it_says_where_everything_is(demo: Demo) -> None:
    report = demo.folder / "home/tmr/demo/report/index.html"
    assert report.is_file()
    assert str(report) in demo.printed
    assert "tmr/demo" in demo.printed
