"""What a run publishes, and when: nothing without --pr."""

from __future__ import annotations

import pytest

from tests.support.cli import until
from tests.support.robots import SETTINGS, Robots

PATIENCE = 300


@pytest.fixture
def robots(robots: Robots) -> Robots:
    robots.paths = ("tests/test_add.py",)
    return robots


def test_only_with_pr_a_run_uses_the_remote_and_gh(robots: Robots) -> None:
    cli = robots.cli
    remote = cli.base / "remote.git"
    cli.git("init", "-q", "--bare", str(remote))
    cli.git("remote", "add", "origin", str(remote))
    said = cli.base / "gh-said"
    gh = cli.base / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {said}\n')
    gh.chmod(0o755)
    cli.env["PATH"] = f"{gh.parent}:{cli.env['PATH']}"
    done = cli(*robots.words, "--yes", timeout=PATIENCE).ok()
    assert "1 test collected, 1 selected" in done.err
    assert "Agent type: command, on this machine.\n" in done.err
    assert "To publish it: git push -u origin tmr/six" in done.out
    assert cli.git("ls-remote", str(remote)) == "" and not said.exists()
    cli(*robots.words, "--yes", "--pr", timeout=PATIENCE).ok()
    pushed = f"{cli.git('rev-parse', 'tmr/six')}\trefs/heads/tmr/six"
    assert cli.git("ls-remote", str(remote)) == pushed
    words = said.read_text().splitlines()
    assert words[:4] == ["pr", "create", "--head", "tmr/six"]
    assert words[-1] == str(robots.run_folder / "pull-request.md")
    gh.write_text("#!/bin/sh\necho 'gh: not logged in' >&2\nexit 4\n")
    failed = cli(*robots.words, "--yes", "--pr", timeout=PATIENCE)
    failed.fails(1, "gh could not open the pull request: gh: not logged in")


def test_a_run_whose_checks_have_no_sandbox_raises_an_alert_and_notes_it(robots: Robots) -> None:
    robots.cli.write("pyproject.toml", f"{SETTINGS}sandbox = false\n")
    robots.base = robots.cli.commit("no sandbox")
    words = (*robots.words, "--yes", "--", "-k", "add or sub")
    told = robots.cli(*words, timeout=PATIENCE).ok().err
    alert = "baseline, verification and gates run without a sandbox: the project disables it"
    assert f"mngr: alert: {alert}\n" in told and robots.run.alerts == [alert]
    (task,) = robots.run.tasks.values()
    assert task.verdict and task.verdict.proofs
    assert not any(proof.sandboxed for proof in task.verdict.proofs)
    copied = "pytest -k 'add or sub' -- tests/test_add.py"
    assert {proof.command for proof in task.verdict.proofs} == {copied}


def test_a_branch_that_prevents_branches_of_runs_is_reported_before_and_after_agents(
    robots: Robots,
) -> None:
    cli = robots.cli
    cli.git("branch", "tmr")
    early = cli(*robots.words, "--yes").fails(1, "a branch called 'tmr'", "git branch -m tmr")
    assert not early.out and not robots.launches()
    cli.git("branch", "-D", "tmr")
    robots.hold()
    running = robots.start()
    until(robots.launches, PATIENCE, "an agent")
    cli.git("branch", "tmr")
    robots.release()
    _, err = running.communicate(timeout=PATIENCE)
    line = err.decode().strip().splitlines()[-1]
    assert running.returncode == 1 and "'refs/heads/tmr' exists" in line, line
    cli.git("branch", "-D", "tmr")
    cli("tmr", "resume", timeout=PATIENCE).ok()
    assert robots.launches() == robots.launches()[:1] and len(robots.branch()) == 1


def test_a_run_that_could_not_collect_a_file_does_not_say_that_nothing_is_wrong(
    robots: Robots,
) -> None:
    robots.paths = ("test_idle.py", "test_bad.py")
    robots.cli.write("tests/test_bad.py", "import missing\n")
    robots.base = robots.cli.commit("bad")
    done = robots.cli(*robots.words, "--only", "failing", cwd=robots.cli.repo / "tests")
    done.fails(1, "the run six failed: 1 file could not be collected")
    assert "Could not be collected: tests/test_bad.py" in done.out and [*robots.run.tests]


def test_a_name_of_a_run_that_ended_or_of_another_repository_is_pointed_out(
    robots: Robots,
) -> None:
    cli = robots.cli
    cli(*robots.words, "--yes", timeout=PATIENCE).ok()
    again = cli(*robots.words, "--yes").ok()
    assert "The run six has already ended; to run the tests again, use another --name." in again.err
    other = cli.base / "other"
    cli.git("clone", "-q", str(cli.repo), str(other))
    cli(*robots.words, "--yes", cwd=other).fails(
        1, f"six is the name of a run in {cli.repo}", "--name"
    )
    cli("tmr", "list", "six").fails(2, "lists all runs")
