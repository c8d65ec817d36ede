"""Code that runs from a copy or through a link is the project's; reasons why there is no code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr_mechanic.program import clock, project, reports, task
from mngr_mechanic.program.clock import Stopwatch, share
from mngr_mechanic.program.lab import Lab
from mngr_mechanic.program.localise import preferred
from mngr_mechanic.program.probe.mechanic_places import place
from mngr_mechanic.program.repair import Repairer
from mngr_mechanic.program.reports import Result
from mngr_mechanic.program.search import Knowledge, Search
from mngr_mechanic.program.source import Edit, SourceFile
from mngr_outcome.outcome import Obstacle
from tests.mngr_mechanic.defects import PROBE
from tests.mngr_mechanic.garage import Garage

CALC = """\
def double(number):
    return number + 3


if __name__ == "__main__":
    print(double(2))
"""
# The program is copied or linked to a folder of the test, and runs there.
TEST = """\
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent.parent


def test_double(tmp_path):
    {put}
    done = subprocess.run([sys.executable, tmp_path / "calc.py"], capture_output=True, text=True)
    assert done.stdout == "4\\n"
"""
COPIED = '(tmp_path / "calc.py").write_text((HERE / "calc.py").read_text())'
LINKED = '(tmp_path / "calc.py").symlink_to(HERE / "calc.py")'
SHELL = """\
import subprocess


def test_words():
    assert subprocess.run(["echo", "one"], capture_output=True, text=True).stdout == "two\\n"
"""


def garage(folder: Path, test: str) -> Garage:
    root = folder / "project"
    (root / "tests").mkdir(parents=True)
    (root / "calc.py").write_text(CALC)
    (root / "tests/test_calc.py").write_text(test)
    return Garage(root, folder / "state")


@pytest.mark.parametrize("put", [COPIED, LINKED])
def test_code_that_runs_elsewhere_is_repaired_in_the_project(tmp_path: Path, put: str) -> None:
    made = garage(tmp_path, TEST.format(put=put))
    outcome = made.work("fix", "tests/test_calc.py::test_double")
    assert (outcome.attempted, outcome.blocked) == ("fix", None), made.output
    assert made.changed() == ["calc.py"]


def test_a_test_that_runs_no_code_of_the_project_is_told_so(tmp_path: Path) -> None:
    made = garage(tmp_path, SHELL)
    outcome = made.work("fix", "tests/test_calc.py::test_words")
    assert outcome.attempted == "none" and outcome.blocked is not None
    assert "found no candidate repair: the test " in outcome.blocked.reason
    assert outcome.blocked.obstacle is Obstacle.NO_FIX
    assert "this project" in outcome.blocked.reason and "tried 0" not in made.output
    assert "published: fix" not in made.output


def test_a_file_is_found_by_its_path_its_real_path_or_its_content(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for name in ("a/one.py", "a/same.py", "b/same.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("same\n" if "same" in name else name)
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "one.py").write_text("a/one.py")
    (tmp_path / "same.py").write_text("same\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/one.py").write_text("something else")
    found = {
        each: place(str(tmp_path / each), str(root))
        for each in ("project/a/one.py", "link/a/one.py", "one.py", "same.py", "other/one.py")
    }
    assert found == {
        "project/a/one.py": "a/one.py",
        "link/a/one.py": "a/one.py",
        "one.py": "a/one.py",
        "same.py": "",  # it is ambiguous
        "other/one.py": "",
    }
    assert place("<string>", str(root)) == place(os.__file__, str(root)) == ""


def test_a_test_that_was_killed_after_its_set_up_did_not_pass(tmp_path: Path) -> None:
    stages = [("whole", "setup"), ("whole", "call"), ("whole", "teardown"), ("cut", "setup")]
    lines = [
        json.dumps({"test": test, "when": when, "outcome": "passed", "seconds": 0.1})
        for test, when in stages
    ]
    (tmp_path / "report").write_text("\n".join(lines))
    assert list(reports.read(str(tmp_path / "report"))) == ["whole"]


def test_lines_that_the_prompt_calls_suspicious_come_first() -> None:
    prompt = (
        "Test: tests/test_x.py::test_y\n\n    0.91  src/a b.py:12-13  run by 19 failing and 2 "
        "passing tests\n    1.00  c.py:3  run by 2 failing and 0 passing tests\n  3.00  no\n"
    )
    args = task.parser().parse_args([])
    wanted = task.from_arguments(args, prompt)
    assert wanted.suspects == (("src/a b.py", 12, 0.91), ("src/a b.py", 13, 0.91), ("c.py", 3, 1.0))
    assert wanted.unused == {("c.py", 3)}
    told = {(path, line): score for path, line, score in wanted.suspects}
    scores = preferred({("c.py", 3): 0.5, ("c.py", 4): 0.6}, told)
    assert max(scores, key=lambda each: scores[each]) == ("c.py", 3)
    assert scores["c.py", 4] == 0.3
    assert preferred({("c.py", 4): 0.6}, {}) == {("c.py", 4): 0.6}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """Yield tests that import the edited code, so that each request collects again."""
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "calc.py").write_text("ONE = 1\n")
    source = "from calc import ONE\n\n\ndef test_{}():\n    assert ONE == 1\n"
    for name in ("one", "other"):
        (root / f"tests/test_{name}.py").write_text(source.format(name))
    (tmp_path / "lab").mkdir()
    made = Lab(str(root), str(tmp_path / "lab"), str(PROBE), sys.executable, [])
    yield made
    made.discard()


ONE, OTHER = "tests/test_one.py::test_one", "tests/test_other.py::test_other"
FAILURE = reports.Failure("AssertionError", "assert 1 == 2", (), 5, {})


def test_a_test_that_is_not_found_does_not_hide_the_others(lab: Lab) -> None:
    """For example if parameters come from a set, so that ids differ in each process."""
    gone = "tests/test_one.py::test_one[3]"
    run = lab.run([OTHER, gone, ONE], seconds=60)
    assert list(run.results) == [OTHER, ONE] and not run.failed
    search = Search([lab], Knowledge(ONE, 0.1), Stopwatch(60.0))
    search.sources = {"calc.py": SourceFile("calc.py", lab.read("calc.py"))}
    assert search._objection(lab, [OTHER, gone]) == ""
    lab.write("calc.py", "ONE = 2\n")
    assert search._objection(lab, [gone, OTHER]) == f"breaks {OTHER}"
    lab.write("calc.py", "import os\n\nos._exit(0)\n")
    assert search._objection(lab, [OTHER, gone]) == f"{OTHER} does not finish"


def test_tests_that_import_no_code_run_in_the_order_asked_for_up_to_a_failure(lab: Lab) -> None:
    """They are collected once; a file that cannot be collected does not hide the others."""
    lab.write("tests/test_one.py", "import there_is_no_such_module\n")
    lab.write("tests/test_other.py", "def test_bad():\n    assert 0\n\n\ndef test_good(): ...\n")
    bad, good = (f"tests/test_other.py::test_{name}" for name in ("bad", "good"))
    assert list(lab.run([good, bad], seconds=60).results) == [good, bad]
    assert list(lab.run([bad, good], seconds=60, stop=True).results) == [bad]
    assert list(lab.run(["tests/test_other.py"], seconds=60, stop=True).results) == [bad]
    assert not lab._early


def test_a_trace_of_other_tests_is_not_read_again(lab: Lab) -> None:
    """Scope: neither of the two runs changes the numbers of failing and unknown tests."""
    search = Search([lab], Knowledge(ONE, 0.1), Stopwatch(60.0))
    first = search._as_they_were(lab, [ONE])[1]
    second = search._as_they_were(lab, [OTHER])[1]
    assert set(first.by_test) == {ONE} and set(second.by_test) == {OTHER}
    assert "tests/test_one.py" not in {path for path, _ in second.by_test[OTHER]}


def test_what_is_learned_in_two_runs_is_not_mixed(lab: Lab) -> None:
    wanted = task.from_arguments(task.parser().parse_args([]), f"fix {ONE}")
    repair = Repairer(lab, wanted, Result(ONE, failure=FAILURE), Stopwatch(60.0))
    unknown = repair.known.unknown
    repair._learn([ONE], 60)
    repair.known.unknown = unknown  # as if the first run had been killed
    repair._learn([OTHER], 60)
    reached = repair.known.coverage.by_test[OTHER]
    assert "tests/test_one.py" not in {path for path, _ in reached}


@pytest.mark.parametrize(("line", "concerned"), [(1, ["t.py::other"]), (2, [])])
def test_a_change_of_a_line_that_no_passing_test_runs_breaks_none(
    line: int, concerned: list[str]
) -> None:
    known = Knowledge("t.py::mine", 0.1, unknown=["t.py::other"], unused=frozenset([("c.py", 2)]))
    search = Search([], known, Stopwatch(1.0))
    search.sources = {"c.py": SourceFile("c.py", "a = 1\nb = 2\n")}
    assert search._concerned(Edit("c.py", 0, 0, "x", "kind", 0.5, line)) == concerned


@pytest.mark.parametrize(("load", "part"), [(0.0, 1.0), (1.0, 1.0), (4.0, 0.5), (400.0, 0.1)])
def test_time_on_a_crowded_machine_counts_for_less(load: float, part: float) -> None:
    assert share(load, 2) == part


class Interrupted(Stopwatch):
    """Lets another thread run at each access to a field."""

    def __getattribute__(self, name: str) -> object:
        time.sleep(0)
        return super().__getattribute__(name)


def test_threads_that_read_the_time_count_each_second_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_share_now", lambda: 1.0)
    watch = Interrupted(60.0)
    readers = [threading.Thread(target=lambda: [watch.spent for _ in range(500)]) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    before, spent = time.monotonic(), watch.spent
    after, rounding = time.monotonic(), 1e-6
    assert before - watch.began - rounding <= spent <= after - watch.began + rounding


def a_python(path: Path) -> str:
    path.parent.mkdir(parents=True)
    path.write_text('#!/bin/sh\necho "$0"\n')
    path.chmod(0o755)
    return str(path)


def test_the_tests_of_a_worktree_run_with_the_python_of_its_main_checkout(tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    main.mkdir()
    for words in (
        ["init", "-q", str(main)],
        [
            "-C",
            str(main),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "a",
        ],
        ["-C", str(main), "worktree", "add", "-q", str(linked)],
    ):
        subprocess.run(["git", *words], check=True)
    own = a_python(main / ".venv/bin/python")
    assert project.interpreter(str(linked), "") == own
    prompt = (
        f"Test: tests/test_a.py::test_b\nRun it with: {own} -m pytest tests/test_a.py::test_b\n"
    )
    wanted = task.from_arguments(task.parser().parse_args([]), prompt)
    assert project.interpreter(str(tmp_path), wanted.python) == own
