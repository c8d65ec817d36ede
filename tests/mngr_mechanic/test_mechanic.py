"""The mechanic at work on the planted jot: what is wrong with it is known, but not to it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mngr_mechanic import archive
from mngr_outcome.outcome import Obstacle
from mngr_tmr.cli.demo_project import plant
from tests.mngr_mechanic.garage import BUDGET, Garage
from tests.support.cli import Cli, until

LOOKING = "tests/test_looking_at_notes.py"
GETTING_STARTED = "tests/test_getting_started.py"
CHANGING = "tests/test_changing_notes.py"
MOVING = "tests/test_moving_notes.py"

CALC = """\
def largest(values):
    best = values[0]
    for value in values:
        if value < best:
            best = value
    return best


def smallest(values):
    return -largest([-value for value in values])
"""
TEST_CALC = """\
from calc import largest, smallest


def test_the_largest():
    assert largest([2, 5, 3]) == 5


def test_of_one():
    assert largest([4]) == 4
    assert smallest([4]) == 4
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("planted") / "jot"
    plant(out)
    return out


@pytest.fixture
def garage(planted: Path, tmp_path: Path) -> Garage:
    return Garage(Path(shutil.copytree(planted, tmp_path / "jot")), tmp_path / "state")


def test_an_agent_outside_a_run_repairs_a_bug_and_commits_it(planted: Path, local: Cli) -> None:
    shutil.rmtree(local.repo)
    shutil.copytree(planted, local.repo)
    test = f"{LOOKING}::test_list_since_a_day_includes_that_day"
    words = ["--no-connect", "-m", f"fix {test}", "--", "--budget", BUDGET]
    local("create", "m", "mechanic", *words).ok()
    until(lambda: local.state("m") not in ("CREATING", "RUNNING"), 300, "the mechanic ends")
    assert local.state("m") == "DONE", local("capture", "m", "--full").out
    assert not (local.state_dir("m") / "outcome.json").exists(), "it belongs to no run"
    change = local.git("diff", "main", "mngr/m")
    assert "-        notes = [note for note in notes if note.day > since]" in change
    assert "+        notes = [note for note in notes if note.day >= since]" in change
    assert "notes.py" in local.git("log", "-1", "--format=%B", "mngr/m")
    shown = local("capture", "m", "--full").ok().out
    assert "repaired: " in shown and "not published: this agent does not belong to a run" in shown


@pytest.mark.soak
def test_a_return_that_is_missing_comes_back(garage: Garage) -> None:
    outcome = garage.work("--test", f"{MOVING}::test_export_makes_a_spreadsheet")
    assert outcome.attempted == "fix"
    assert garage.diff() == ["+    return table.getvalue()"]


def test_a_test_that_contradicts_its_block_is_brought_up_to_date(garage: Garage) -> None:
    test = f"{GETTING_STARTED}::test_words_without_quotes_become_one_note"
    outcome = garage.work("fix", test)
    assert (outcome.attempted, outcome.blocked) == ("fix", None)
    assert garage.changed() == [GETTING_STARTED]
    assert garage.diff() == [
        '-    expect(listed.stdout).to_end_with(" call the electrician about the lamp\\n")',
        '+    expect(listed.stdout).to_end_with(" call the plumber about the tap\\n")',
    ]


def test_a_weak_test_learns_to_look(garage: Garage) -> None:
    test = f"{CHANGING}::test_tag_alone_counts_all_tags"
    outcome = garage.work("improve", test)
    assert outcome.attempted == "improve"
    assert outcome.summary.startswith("Add assertions to test_")
    assert "It also passed when its commands did nothing." in outcome.summary
    assert garage.diff() == [
        "+    expect(result).to_succeed()",
        '+    expect(result.stdout).to_equal("  2 home\\n  1 garden\\n  1 shop\\n")',
    ]
    assert garage.passing(test)
    assert not garage.passing(test, MNGR_E2E_NOOP="1")


def test_a_good_test_is_left_alone(garage: Garage, monkeypatch: pytest.MonkeyPatch) -> None:
    far = garage.state / ("a-temporary-folder-of-some-project/" * 3)  # too far for a socket
    far.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(far))
    outcome = garage.work(f"{LOOKING}::test_list_shows_one_line_per_note")
    assert (outcome.attempted, outcome.blocked) == ("none", None)
    assert garage.changed() == []


def test_a_program_that_is_missing_is_asked_for(garage: Garage) -> None:
    if shutil.which("lowdown"):  # then the test is not blocked
        return
    outcome = garage.work(f"{MOVING}::test_export_makes_a_page")
    assert outcome.blocked is not None
    assert outcome.blocked.reason == "the test runs lowdown, which is not installed here"
    assert outcome.blocked.needs == "its installation"
    assert outcome.blocked.obstacle is Obstacle.MISSING
    assert garage.changed() == []


def test_a_test_that_does_not_exist_is_said_to(garage: Garage) -> None:
    outcome = garage.work(f"{MOVING}::test_nothing_of_the_kind")
    assert outcome.blocked is not None
    assert "no test" in outcome.blocked.reason


def test_killed_at_work_it_leaves_the_tree_as_it_was(garage: Garage) -> None:
    words = garage.argv("--budget", BUDGET, f"{LOOKING}::test_list_last_shows_only_the_newest")
    running = subprocess.Popen(
        words, cwd=garage.root, env=garage.env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert running.stdout is not None
    while b"candidate repairs" not in (line := running.stdout.readline()):
        assert line, "it ended before it was killed"
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    assert garage.git("status", "--porcelain") == ""
    assert garage.git("rev-parse", "HEAD") == garage.before


def test_uncommitted_work_is_not_touched(garage: Garage) -> None:
    (garage.root / "README.md").write_text("mine\n")
    done = subprocess.run(
        garage.argv("fix", f"{MOVING}::test_export_makes_a_page"),
        cwd=garage.root,
        env=garage.env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "README.md" in done.stdout
    assert not (garage.state / "outcome.json").exists()


def test_the_program_is_the_same_file_every_time() -> None:
    assert archive.build() == archive.build()


def test_the_program_needs_no_module_outside_its_file(tmp_path: Path) -> None:
    (tmp_path / archive.NAME).write_bytes(archive.build())
    # -I ignores PYTHONPATH, -S the packages of this environment, mngr among them.
    words = [sys.executable, "-I", "-S", archive.NAME, "--help"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "--budget" in done.stdout, done.stderr


def test_it_asks_which_test_is_meant_and_takes_a_line_for_an_answer(garage: Garage) -> None:
    done = subprocess.run(
        garage.argv(),
        cwd=garage.root,
        env=garage.env,
        input=f"fix {LOOKING}::test_no_such_test\n",
        capture_output=True,
        text=True,
    )
    assert "which test?" in done.stdout
    assert done.returncode == 0
    assert json.loads((garage.state / "outcome.json").read_text())["blocked"] is not None


def calc(tmp_path: Path) -> Garage:
    """Return a project whose tests import the code under repair."""
    root = tmp_path / "calc"
    root.mkdir()
    (root / ".gitignore").write_text("__pycache__/\n")
    (root / "calc.py").write_text(CALC)
    (root / "test_calc.py").write_text(TEST_CALC)
    return Garage(root, tmp_path / "state")


@pytest.mark.soak
def test_code_that_tests_import_is_repaired_as_well(tmp_path: Path) -> None:
    """Scope: no commands are run; what is collected holds the code under repair."""
    garage = calc(tmp_path)
    outcome = garage.work("test_calc.py::test_the_largest")
    assert (outcome.attempted, outcome.blocked) == ("fix", None), garage.output
    assert garage.diff() == ["-        if value < best:", "+        if value > best:"]


@pytest.mark.soak
def test_a_test_in_a_folder_with_its_own_settings_is_repaired(tmp_path: Path) -> None:
    root = tmp_path / "many"
    for name, code in {"calc": CALC, "other": "raise RuntimeError('of another package')\n"}.items():
        (root / name / "src").mkdir(parents=True)
        (root / name / "tests").mkdir()
        settings = '[tool.pytest.ini_options]\npythonpath = ["src"]\n'
        (root / name / "pyproject.toml").write_text(settings)
        (root / name / f"src/{name}.py").write_text(code)
    (root / "calc/tests/test_calc.py").write_text(TEST_CALC)
    (root / "other/tests/test_other.py").write_text("import other\n")
    (root / "pyproject.toml").write_text("[project]\nname = 'many'\n")
    (root / ".gitignore").write_text("__pycache__/\n")
    garage = Garage(root, tmp_path / "state")
    outcome = garage.work("calc/tests/test_calc.py::test_the_largest")
    assert (outcome.attempted, outcome.blocked) == ("fix", None), garage.output
    assert garage.changed() == ["calc/src/calc.py"]


@pytest.mark.soak
def test_what_leaves_another_test_of_the_line_failing_gives_way_to_better(tmp_path: Path) -> None:
    """`and` for `or` would satisfy the one test, and refuse nothing any more."""
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    wrong = "not isinstance(text, str) or text.strip()"
    code = f"def kept(text):\n    if {wrong}:\n        raise ValueError(text)\n    return text\n"
    (root / ".gitignore").write_text("__pycache__/\n")
    (root / "notes.py").write_text(code)
    head = "import pytest\nfrom notes import kept\n\n\n"
    keeps = "def test_it_keeps():\n    assert kept('x') == 'x'\n"
    (root / "tests/test_keeps.py").write_text(head + keeps)
    refuses = "def test_it_refuses():\n    with pytest.raises(ValueError):\n        kept(' ')\n"
    (root / "tests/test_refuses.py").write_text(head + refuses)
    garage = Garage(root, tmp_path / "state")
    outcome = garage.work("tests/test_keeps.py::test_it_keeps")
    assert (outcome.attempted, outcome.blocked) == ("fix", None), garage.output
    assert garage.passing(), garage.output


LABELS = """\
def name(long, short):
    return long and short


def label(long, short):
    return "<" + name(long, short) + "]"
"""
CASES = """\
import pytest


def pytest_collect_file(file_path, parent):
    if file_path.suffix == ".cases":
        return Cases.from_parent(path=file_path, parent=parent)


class Cases(pytest.File):
    def collect(self):
        return [Case.from_parent(self, name="case (1)")]


class Case(pytest.Item):
    def runtest(self):
        from labels import name

        assert name(*self.path.read_text().split()) == "long"
"""


def test_one_of_two_causes_is_repaired_for_a_test_of_any_kind(tmp_path: Path) -> None:
    """The other test fails in another way with it, because it has both causes."""
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / ".gitignore").write_text("__pycache__/\n")
    (root / "labels.py").write_text(LABELS)
    (root / "tests/conftest.py").write_text(CASES)
    (root / "tests/names.cases").write_text("long short\n")
    both = "def test_label():\n    assert label('long', 'short') == '<long>'\n"
    (root / "tests/test_label.py").write_text(f"from labels import label\n\n\n{both}")
    garage = Garage(root, tmp_path / "state")
    outcome = garage.work("Test: tests/names.cases::case (1)\nMode: fix\n", budget="8")
    assert (outcome.attempted, outcome.blocked) == ("fix", None), garage.output
    assert garage.diff() == ["-    return long and short", "+    return long or short"]


@pytest.mark.soak
def test_a_test_command_is_used_as_given(tmp_path: Path) -> None:
    garage = calc(tmp_path)
    command = (
        f"echo ran >> {tmp_path}/log; {sys.executable} -m pytest -q -p no:cacheprovider NODEID"
    )
    outcome = garage.work("--test-command", command, "--test", "test_calc.py::test_the_largest")
    assert (outcome.attempted, outcome.blocked) == ("fix", None), garage.output
    assert (tmp_path / "log").read_text().startswith("ran\n")
