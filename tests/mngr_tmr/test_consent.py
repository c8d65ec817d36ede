"""Nothing is launched that was not agreed to, and nothing is left of what was declined."""

from __future__ import annotations

import os

import pytest

from mngr_tmr.run import runs
from tests.support.cli import Cli, until
from tests.support.robots import Robots

PATIENCE = 300


def nothing_is_left(robots: Robots) -> bool:
    cli = robots.cli
    refs = cli.git("for-each-ref", "refs/mngr/tmr", "refs/heads/tmr")
    tmr = cli.home / "tmr"
    return not refs and not robots.agents() and not (tmr.exists() and list(tmr.iterdir()))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rnu"], "mngr tmr run"),
        (["resum", "six"], "mngr tmr resume"),
        (["tests"], "mngr tmr run tests"),
        (["tests/test_add.py::test_add"], "mngr tmr run tests/test_add.py::test_add"),
        (["--yes"], "missing"),
    ],
)
def test_an_unknown_verb_is_an_error_with_a_suggestion(
    robots: Robots, words: list[str], told: str
) -> None:
    robots.cli("tmr", *words).fails(2, told)
    assert nothing_is_left(robots)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["show", "--max-cost", "3"], "it is an option of `mngr tmr run` and `mngr tmr retune`"),
        (
            ["run", "--undo"],
            "`mngr tmr run` does not take --undo; it is an option of `mngr tmr rm`",
        ),
        (["integrate", "six", "--rounds", "1"], "`mngr tmr run`"),
        (["list", "--out", "x"], "`mngr tmr report`"),
        (["cancel", "six", "--", "-x"], "no arguments for pytest"),
    ],
)
def test_an_option_of_another_verb_is_an_error_that_names_it(
    local: Cli, words: list[str], told: str
) -> None:
    local("tmr", *words).fails(2, told)


def test_an_option_with_a_default_in_the_settings_belongs_to_no_verb(local: Cli) -> None:
    local("config", "set", "commands.tmr.max_cost", "3").ok()
    local("tmr", "list").ok()


def test_a_run_that_is_declined_leaves_nothing(robots: Robots) -> None:
    done = robots.cli(*robots.words, timeout=PATIENCE)
    done.fails(1, "no agent was started, because a confirmation requires a terminal", "--yes")
    assert nothing_is_left(robots)


def test_a_run_whose_tests_cannot_be_found_leaves_nothing(robots: Robots) -> None:
    robots.paths = ("tests/nowhere",)
    told = "file or directory not found: tests/nowhere; put paths of tests after `mngr tmr run`"
    robots.cli(*robots.words, "--yes", timeout=PATIENCE).fails(1, "no tests were collected", told)
    assert nothing_is_left(robots)


def test_a_program_that_is_missing_is_told_before_any_test_runs(robots: Robots) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(robots.folder)}
    done = robots.cli("tmr", "run", "--type", "codex", "--yes", env=env)
    assert done.code != 0 and "codex is not installed on localhost" in done.err
    assert nothing_is_left(robots)


def test_a_missing_login_is_told_before_any_test_runs(robots: Robots) -> None:
    """And before anything is asked."""
    program = robots.folder / "codex"
    program.write_text("#!/bin/sh\ntouch ran\n")
    program.chmod(0o755)
    env = {"PATH": f"{robots.folder}:{os.environ['PATH']}", "HOME": str(robots.folder)}
    done = robots.cli("tmr", "run", "--type", "codex", env=env)
    assert done.code != 0 and "codex is not logged in" in done.err, done.err
    assert "Launch" not in done.err + done.out
    assert nothing_is_left(robots)


def test_what_git_says_of_a_directory_it_refuses_is_passed_on(robots: Robots) -> None:
    env = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    for words in (["tmr", "run", "--yes"], ["create", "x", "--no-connect", "--", "true"]):
        done = robots.cli(*words, env=env)
        assert done.code != 0 and "dubious ownership" in done.err, done.err
    assert nothing_is_left(robots)


def test_integrate_launches_no_agent_and_resume_the_rest(robots: Robots) -> None:
    robots.hold()
    running = robots.start("--max-agents", "1")
    until(robots.launches, PATIENCE, "a first agent")
    running.kill()
    running.communicate()
    before = robots.launches()
    robots.release()
    robots.cli("tmr", "integrate", "six", timeout=PATIENCE)
    assert robots.launches() == before
    robots.cli("tmr", "resume", "six", timeout=PATIENCE).ok()
    assert len(robots.launches()) == 7 and len(robots.branch()) == 4


def at(second: int) -> dict[str, str]:
    """The time of commits: within one second, the same work is the same commit."""
    return dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"170000000{second} +0000")


def test_a_branch_that_is_not_ours_to_move_stays_and_another_is_made(robots: Robots) -> None:
    cli = robots.cli
    robots.paths = ("tests/test_add.py",)
    words = (*robots.words, "--yes")
    mine = cli.git("commit-tree", "-m", "mine", "HEAD^{tree}")
    cli.git("branch", "tmr/six", mine)
    done = cli(*words, timeout=PATIENCE, env=at(1)).ok()
    assert cli.git("rev-parse", "tmr/six") == mine
    assert "Branch: tmr/six-2" in done.out
    assert "The branch is tmr/six-2, because tmr/six was changed outside mngr." in done.out
    fix = cli.git("rev-parse", "tmr/six-2")
    cli.git("checkout", "-q", "tmr/six-2")
    again = cli("tmr", "integrate", "six", timeout=PATIENCE, env=at(1)).ok().out
    assert "Branch: tmr/six-2" in again, "the very same commit: there is nothing to move"
    told = cli("tmr", "integrate", "six", timeout=PATIENCE, env=at(2)).ok().out
    assert cli.git("rev-parse", "tmr/six-2") == fix, "it is checked out"
    assert "Branch: tmr/six-3" in told and "because tmr/six was changed" in told
    assert cli.git("rev-parse", "tmr/six-3^{tree}") == cli.git("rev-parse", f"{fix}^{{tree}}")


def test_a_run_is_removed_and_comes_back_with_its_refs_and_branch(robots: Robots) -> None:
    cli = robots.cli
    robots.paths = ("tests/test_add.py",)
    cli(*robots.words, "--yes", timeout=PATIENCE).ok()
    refs = cli.git("for-each-ref", "refs/mngr/tmr", "refs/heads/tmr")
    assert "refs/heads/tmr/six" in refs
    assert cli("tmr", "rm", "six", "--dry-run", "--format", "json").ok().json()["removed"] is False
    assert "mngr tmr rm --undo six" in cli("tmr", "rm", "six").ok().out
    assert not cli.git("for-each-ref", "refs/mngr/tmr", "refs/heads/tmr")
    assert "No runs found" in cli("tmr", "list").ok().err + cli("tmr", "list").ok().out
    cli("tmr", "rm", "six").fails(4)
    cli("tmr", "rm", "--undo", "six").ok()
    assert cli.git("for-each-ref", "refs/mngr/tmr", "refs/heads/tmr") == refs
    assert runs.load(robots.run_folder).status == "done"
    cli("tmr", "rm", "--undo", "six").fails(4, "no run 'six' was removed")


def test_a_removed_run_is_collected_when_its_time_in_the_trash_is_over(robots: Robots) -> None:
    cli = robots.cli
    robots.paths = ("tests/test_add.py",)
    cli(*robots.words, "--yes", timeout=PATIENCE).ok()
    cli("tmr", "rm", "six").ok()
    cli("gc").ok()
    kept = [each.name for each in runs.trash(str(cli.home)).iterdir()]
    assert len(kept) == 1 and cli.git("for-each-ref", "refs/mngr/trash/tmr")
    found = cli("gc", "-S", "trash.keep=0s", "--dry-run", "--format", "json").ok().json()
    assert [row["what"] for row in found["leftovers"] if row["kind"] == "run"] == kept
    cli("gc", "-S", "trash.keep=0s").ok()
    assert not list(runs.trash(str(cli.home)).iterdir())
    assert not cli.git("for-each-ref", "refs/mngr/trash/tmr")
    cli("tmr", "rm", "--undo", "six").fails(4)
