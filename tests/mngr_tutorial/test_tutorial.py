"""`mngr tutorial`, on small projects whose tests are run."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mngr_e2e import blocks
from mngr_tutorial import scaffolding
from mngr_tutorial.citations import read_citations
from tests.support.cli import Cli, Result

TUTORIAL = """\
#!/bin/sh

# === Speaking ===

# say hello
echo hello

# say it twice
echo hello
printf 'again\\n'

# === Files ===

# where are we?
cd /
ls -d .

# still to be written
"""

TEST = '''\
"""Speaking."""

from __future__ import annotations

from mngr_e2e import E2eSession, expect


def test_hello(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # say hello
    echo hello
    """)
    expect(e2e.run("echo hello")).to_succeed()


class TestMore:
    def test_twice(self, e2e: E2eSession) -> None:
        """It can be repeated.

        Tutorial block:
            # say it twice
            echo hello
            printf 'again\\\\n'

        Scope: only the words.
        """
        e2e.run("echo hello world")
        e2e.run("ls; printf 'again\\\\n'")
'''

FILES = '''\
def test_where(e2e):
    e2e.write_tutorial_block("""
        # where are we?
        cd /
        ls -d .
        """)
    e2e.run("ls -d .", cwd="/")
'''


class Project:
    """A tutorial, its tests, and both programs that look at them."""

    def __init__(self, cli: Cli) -> None:
        self.cli = cli
        self.root = cli.repo
        self.tutorial = cli.write("tutorial.sh", TUTORIAL)
        self.tests = cli.write("tests/test_speaking.py", TEST)
        cli.write("tests/test_files.py", FILES)
        cli.write("pyproject.toml", "[tool.pytest.ini_options]\n")

    def __call__(self, *args: str) -> Result:
        return self.cli("tutorial", *args)

    def change(self, path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def pytest(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "mngr_e2e.plugin", *args]
        settled = self.cli.env | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | env
        return subprocess.run(argv, cwd=self.root, env=settled, capture_output=True, text=True)


@pytest.fixture
def project(local: Cli) -> Project:
    return Project(local)


def problems(result: Result) -> list[str]:
    assert result.code == (1 if result.out else 0), result
    return result.out.splitlines()


def test_a_tutorial_whose_tests_cite_and_run_it_has_no_problems(project: Project) -> None:
    done = project.pytest()
    assert done.returncode == 0, done.stdout
    checked = project("check")
    assert problems(checked) == [], checked
    assert checked.err == "3 blocks, 3 citations: no problems.\n"


def test_a_block_that_no_test_cites_is_named_with_its_line(project: Project) -> None:
    (project.root / "tests/test_files.py").unlink()
    checked = project("check", "--no-results")
    assert problems(checked) == ["tutorial.sh:14: no test cites this block: where are we?"]
    assert "`mngr tutorial scaffold` writes the missing tests" in checked.err


def test_a_citation_that_is_not_in_the_tutorial_is_named_with_the_nearest(project: Project) -> None:
    project.change(project.tutorial, "printf 'again\\n'", "printf 'twice\\n'")
    assert problems(project("check", "--no-results")) == [
        "tutorial.sh:8: no test cites this block: say it twice",
        (
            "tests/test_speaking.py:21: cites a block that is not in tutorial.sh; "
            "the nearest, at line 8, has \"printf 'twice\\\\n'\" instead of \"printf 'again\\\\n'\""
        ),
    ]


def test_identical_blocks_and_citations_that_are_no_text_are_problems(project: Project) -> None:
    project.tutorial.write_text(TUTORIAL + "\n# say hello\necho hello\n")
    cite = "def test_odd(e2e):\n    e2e.write_tutorial_block(f'{1}')\n"
    (project.root / "tests/test_odd.py").write_text(cite)
    assert problems(project("check", "--no-results")) == [
        "tutorial.sh:20: the same block as at line 5: say hello",
        "tests/test_odd.py:2: the cited block is not plain text, so it cannot be compared",
    ]


def test_a_test_that_did_not_run_what_it_cites_is_named(project: Project) -> None:
    project.change(project.tests, "ls; printf", "echo printf")
    assert project.pytest().returncode == 0
    assert problems(project("check")) == [
        (
            "tests/test_speaking.py:21: TestMore.test_twice did not run \"printf 'again\\\\n'\""
            " of tutorial.sh:8"
        )
    ]


def test_only_results_of_the_present_test_count(project: Project) -> None:
    line = "tests/test_speaking.py:10: test_hello"
    before = problems(project("check"))
    assert f"{line} has not been run" in before and len(before) == 3
    assert project.pytest(MNGR_E2E_NOOP="1").returncode == 0
    assert problems(project("check")) == before  # a no-op run proves nothing
    assert project.pytest().returncode == 0
    project.change(project.tests, 'run("echo hello")', 'run("echo hello you")')
    assert problems(project("check")) == [f"{line} changed since it last ran"]
    assert project.pytest("-k", "hello").returncode == 0
    assert problems(project("check")) == []


def test_a_newer_result_replaces_an_older_one(project: Project) -> None:
    project.change(project.tests, '"ls; ', '__import__("os").environ.get("TRIED", "") + "')
    assert project.pytest().returncode == 0
    assert problems(project("check")) == []
    assert project.pytest(TRIED="true ").returncode == 0
    assert [line.split(": ")[0] for line in problems(project("check"))] == [
        "tests/test_speaking.py:21"
    ]


def test_json_says_the_same(project: Project) -> None:
    (project.root / "tests/test_files.py").unlink()
    checked = project("check", "--no-results", "--format", "json")
    assert checked.code == 1
    assert json.loads(checked.out) == {
        "blocks": 3,
        "citations": 2,
        "problems": [
            {
                "kind": "uncovered",
                "path": "tutorial.sh",
                "line": 14,
                "message": "no test cites this block: where are we?",
                "test": "",
                "block": 14,
            }
        ],
    }
    lines = project("check", "--no-results", "--format", "{kind} {line}")
    assert lines.out == "uncovered 14\n"


def test_a_test_of_the_same_name_in_another_file_is_another_test(project: Project) -> None:
    """Scope: only the block that was not run gets a test, although both are called test_hello."""
    project.change(project.root / "tests/test_files.py", "def test_where", "def test_hello")
    project.change(project.root / "tests/test_files.py", 'ls -d .", cwd', 'true", cwd')
    assert project.pytest().returncode == 0
    assert [line.split(": ")[0] for line in problems(project("check"))] == ["tests/test_files.py:3"]
    wanted = project("sync", "--dry-run", "--format", "json").ok().json()
    assert wanted["blocks"] == [14]


def test_scaffold_writes_tests_that_run_and_cover(project: Project) -> None:
    shutil.rmtree(project.root / "tests")
    (project.root / "tests").mkdir()
    added = project("scaffold")
    assert added.code == 0 and added.err == "Added 3 tests.\n", added
    assert sorted(os.listdir(project.root / "tests")) == ["test_files.py", "test_speaking.py"]
    done = project.pytest()
    assert "3 passed" in done.stdout, done.stdout
    assert problems(project("check")) == []
    again = project("scaffold")
    assert again.out == "Every block has a test\n" and again.code == 0


def test_scaffold_keeps_lines_in_one_shell_that_need_each_other(project: Project) -> None:
    shutil.rmtree(project.root / "tests")
    project.tutorial.write_text("word=hi\ntest $word = hi\n\ntest -n '' ||\n  echo \"it's\" no\n")
    assert project("scaffold").code == 0
    assert "2 passed" in project.pytest().stdout
    assert problems(project("check")) == []


def test_scaffold_writes_new_files_only_and_takes_no_name_twice(project: Project) -> None:
    thrice = "# thrice\necho hello\n\n# thrice?\necho hello you\n\n# === Files"
    project.change(project.tutorial, "# === Files", thrice)
    project.cli.write("tests/more/test_speaking_2.py", "")
    before = {path: path.read_text() for path in (project.root / "tests").rglob("*.py")}
    would = project("scaffold", "--dry-run")
    assert would.err == "Would add 2 tests.\n"
    assert project("scaffold").out.splitlines()[1:] == would.out.splitlines()[1:]
    assert [line.split() for line in would.out.splitlines()[1:]] == [
        ["tests/test_speaking_3.py", "test_thrice", "12"],
        ["tests/test_speaking_3.py", "test_thrice_2", "15"],
    ]
    assert all(path.read_text() == text for path, text in before.items())
    assert "5 passed" in project.pytest().stdout
    assert problems(project("check")) == []


def test_without_a_tutorial_the_error_says_where_it_was_looked_for(project: Project) -> None:
    project.tutorial.unlink()
    missing = project("check")
    assert missing.code == 4 and f"no tutorial {project.tutorial}" in missing.err
    project.cli.write("pyproject.toml", '[tool.mngr_e2e]\ntutorial = "tour.sh"\n')
    project.cli.write("tour.sh", TUTORIAL)
    assert problems(project("check", "--no-results")) == []
    nowhere = project("check", "--tests", "elsewhere")
    assert nowhere.code == 4 and "no tests at" in nowhere.err
    project.cli.write("tests/test_broken.py", "def (")
    project("check").fails(2, "cannot be read as Python", "(test_broken.py, line 1)")


def test_what_cannot_be_read_is_named_in_one_line(project: Project) -> None:
    project("fill", "--timeout", "0s").fails(2, "must be more than 0")
    project("fill", "--line", "x").fails(2, "'x' is not a line number")
    project.cli.write("pyproject.toml", "[tool.mngr_e2e]\nshel = 'sh'\n")
    refused = project("check").fails(2, "unknown key 'shel'", "did you mean 'shell'?")
    assert refused.err.count("pyproject.toml") == 1
    project.cli.write("pyproject.toml", "[tool")
    assert project("check").fails(2, "pyproject.toml: ").err.count("pyproject.toml") == 1
    project.cli.write("pyproject.toml", "")
    project.tutorial.write_bytes(b"echo \xff\n")
    project("check").fails(2, "is not UTF-8")


def test_one_file_of_tests_can_be_checked_and_torn_results_do_not_count(project: Project) -> None:
    checked = project("check", "--no-results", "--tests", "tests/test_files.py")
    assert all("no test cites this block" in line for line in problems(checked))
    assert project.pytest().returncode == 0
    project.cli.write(".mngr-e2e/torn/test/result.json", '{"schema": 1,')
    assert problems(project("check")) == []


def test_outside_a_repository_there_is_no_branch_for_new_tests(project: Project) -> None:
    (project.root / "tests/test_files.py").unlink()
    shutil.rmtree(project.root / ".git")
    project("sync").fails(2, "is not in a git repository", "`sync` creates a branch")


def test_the_name_of_a_test_is_cut_after_a_word(project: Project) -> None:
    project.tutorial.write_text(f"{TUTORIAL}\n# {'forty ' * 11}winks\ntrue\n")
    made = project("scaffold", "--dry-run", "--format", "{test}").ok().out.split()
    assert made == [f"test_{'_'.join(['forty'] * 10)}"]


LINE = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), min_size=1)


@given(st.lists(LINE | st.sampled_from(['"""', "'''", "\\", "cd x", "#"]), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_block_holds_its_scaffold_is_python_that_cites_and_runs_it(
    tmp_path: Path, lines: list[str]
) -> None:
    path = tmp_path / "test_x.py"
    for block in blocks.parse("\n".join(lines)):
        source = scaffolding.render("test_x", block)
        text = scaffolding.module([scaffolding.NewTest(path, "test_x", block, source)])
        path.write_text(text, encoding="utf-8")
        assert [citation.block for citation in read_citations(path, "test_it.py")] == [block.text]
        runs = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        ran = [
            ast.literal_eval(call.args[0]) for call in runs if "e2e.run" in ast.unparse(call.func)
        ]
        assert "\n".join(ran) == "\n".join(block.commands)


# install-commands

SLASH = ".claude/commands/sync-tutorial-to-e2e-tests.md"


def test_the_slash_command_is_installed_and_kept_up_to_date(project: Project) -> None:
    path = project.root / SLASH
    would = project("install-commands", "--dry-run", "--format", "json").ok().json()
    assert would == {"path": str(path), "before": "absent", "written": False}
    assert not path.exists()
    assert project("install-commands").ok().out == f"Wrote {path}\n"
    text = path.read_text()
    assert text.startswith("---\ndescription: ") and "$ARGUMENTS" in text and "`tests`" in text
    assert project("install-commands").ok().out == f"Up to date: {path}\n"
    # An earlier version of ours, as it was written then, is no work of the user's.
    project.cli.write("tests/e2e/test_x.py", "")
    assert project("install-commands", "--format", "{before}").ok().out == "outdated\n"
    assert "`tests/e2e`" in path.read_text()


def test_a_slash_command_that_somebody_changed_is_left_alone(project: Project) -> None:
    path = project.root / SLASH
    project("install-commands").ok()
    path.write_text(path.read_text().replace("tutorial is", "tutorial was"))
    changed = path.read_text()
    project("install-commands").fails(1, "was edited, or was not written by mngr", "--force")
    assert path.read_text() == changed
    project("install-commands", "--force").ok()
    assert "tutorial was" not in path.read_text()
    path.unlink()
    path.write_bytes(b"\xff")
    project("install-commands").fails(1, "--force")
    path.unlink()
    target = project.cli.write("elsewhere.md", "mine\n")
    path.symlink_to(target)
    project("install-commands").fails(1, "--force")
    project("install-commands", "--force").ok()
    assert target.read_text() == "mine\n" and not path.is_symlink()


def test_the_slash_command_can_be_the_users(project: Project) -> None:
    path = project.cli.user_home / SLASH
    assert project("install-commands", "--user").ok().out == f"Wrote {path}\n"
    assert "the project's directory of end-to-end tests" in path.read_text()
    assert not (project.root / ".claude").exists()
    project("check", "--user").fails(2, "--user is an option of `mngr tutorial install-commands`")
