"""`--only changed`: what tests needed in an earlier run decides which of them get an agent."""

from __future__ import annotations

from tests.support.cli import Cli
from tests.support.robots import Robots

PATIENCE = 300


def chosen(robots: Robots, name: str) -> tuple[set[str], str]:
    """Those that were selected; one agent is launched, the others are over budget."""
    robots.name = name
    limits = ("--only", "changed", "--max-launches", "1", "--retries", "0", "--yes")
    done = robots.cli(*robots.words, *limits, timeout=PATIENCE)
    tasks = robots.run.tasks.values()
    assert robots.run.selected, done.err
    return {task.node_id.rpartition("::test_")[2] for task in tasks}, done.err


def test_tests_are_chosen_by_what_they_needed_when_they_last_ran(local: Cli) -> None:
    robots = Robots(local)
    # A constant that is imported, a file that is read, and a program that is started.
    local.write("app/zero.py", "NOTHING = 0\n")
    local.write(
        "app/word.py", "from app.zero import NOTHING\n\n\ndef word(a, b):\n    return NOTHING\n"
    )
    local.write("data/two.txt", "2\n")
    local.write("app/idle.py", "def idle(a, b):\n    return int(open('data/two.txt').read())\n")
    started = "import subprocess\n\n\ndef div(a, b):\n    subprocess.run('true')\n    return 0\n"
    local.write("app/div.py", started)
    local.commit("needs")
    first, told = chosen(robots, "first")
    assert len(first) == 6
    assert "`changed` selects all tests" in told
    # Nothing changed; the files of a program that a test started are unknown.
    assert chosen(robots, "second")[0] == {"div"}
    local.write("app/zero.py", "NOTHING = 1 - 1\n")
    local.write("data/two.txt", "2 \n")
    local.write("README", "other words\n")
    test = local.repo / "tests/test_add.py"
    test.write_text(test.read_text() + "\n\ndef test_more():\n    assert True\n")
    local.commit("changes")
    found, told = chosen(robots, "third")
    assert found == {"div", "word", "idle", "add", "more"}
    assert "selects all tests" not in told
    assert robots.run.left_out["tests/test_mul.py::test_mul"] == "does not use a changed file"


E2E = '''import sys


def test_{name}(e2e):
    """A command."""
    result = e2e.run(f"{{sys.executable}} -m app.{name}")
    assert result.exit_code == 0
'''


def test_of_python_commands_it_is_known_what_they_needed(local: Cli) -> None:
    robots = Robots(local)
    settings = '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n'
    local.write("pyproject.toml", settings)
    conftest = "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef there(e2e):\n"
    local.write("tests/conftest.py", f"{conftest}    e2e.env['PYTHONPATH'] = str(e2e.root)\n")
    for name in ("one", "two"):
        local.write(f"app/{name}.py", f"print('{name}')\n")
        local.write(f"tests/test_{name}.py", E2E.format(name=name))
    local.commit("commands")
    robots.paths = ("tests/test_one.py", "tests/test_two.py")
    assert chosen(robots, "first")[0] == {"one", "two"}
    local.write("app/two.py", "print('deux')\n")
    local.commit("change")
    assert chosen(robots, "second")[0] == {"two"}
