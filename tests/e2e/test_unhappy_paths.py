"""What the tutorial does not dwell on: mistakes and accidents, and what is left after them."""

from __future__ import annotations

import pytest

from mngr_e2e import E2eSession, expect
from tests.e2e.world import (
    ask_tmux,
    commit,
    ended,
    git,
    given,
    host_dir,
    names,
    state,
    work_dir,
)


def test_a_merge_with_a_conflict_leaves_the_ordinary_state_of_git(e2e: E2eSession) -> None:
    given(e2e, "fix")
    commit(e2e, "fix", "README.md", "theirs")
    (e2e.work / "README.md").write_text("ours\n")
    git(e2e, "commit -qam Ours")
    merged = e2e.run("mngr merge fix")
    expect(merged).to_have_exit_code(1)
    expect(git(e2e, "status --short")).to_equal("UU README.md")
    expect(e2e.run("git merge --abort")).to_succeed()
    expect(e2e.work / "README.md").to_have_content("ours\n")


def test_a_diverged_branch_is_replaced_only_by_force_and_its_old_tip_kept(e2e: E2eSession) -> None:
    given(e2e, "far", "--transfer mirror")
    commit(e2e, "far", "far.txt", "far")
    expect(e2e.run("mngr pull far")).to_succeed()
    git(e2e, "branch review mngr/far")
    git(e2e, "commit -q --allow-empty -m Elsewhere")
    git(e2e, "branch -f mngr/far HEAD")
    tip = git(e2e, "rev-parse mngr/far")
    refused = e2e.run("mngr pull far")
    expect(refused).to_have_exit_code(1)
    expect(git(e2e, "rev-parse mngr/far")).to_equal(tip)
    expect(e2e.run("mngr pull far --force")).to_succeed()
    expect(git(e2e, "rev-parse refs/mngr/replaced/1/mngr/far")).to_equal(tip)


def test_of_several_targets_one_that_is_missing_gives_its_own_exit_code(e2e: E2eSession) -> None:
    given(e2e, "fix")
    alone = e2e.run("mngr stop nobody")
    expect(alone).to_have_exit_code(4)
    expect(alone.stderr).to_contain("no agent 'nobody'")
    expect(alone.stdout).to_be_empty()
    together = e2e.run("mngr exec fix nobody true")
    expect(together).to_fail()
    expect(state(e2e, "fix")).to_equal("RUNNING")


@pytest.mark.parametrize("name", ["'two words'", "../up", "a.b", "-x"])
def test_a_name_that_cannot_be_one_is_refused_before_anything_happens(
    e2e: E2eSession, name: str
) -> None:
    made = e2e.run(f"mngr create {name} --no-connect -- true")
    expect(made).to_have_exit_code(2)
    expect(made.stdout).to_be_empty()
    expect(made.stderr).to_start_with("mngr: ")
    assert names(e2e) == []
    expect(git(e2e, "branch --list")).to_equal("* main")


def test_a_program_that_does_not_exist_is_refused_before_anything_is_made(
    e2e: E2eSession,
) -> None:
    made = e2e.run("mngr create typo --no-connect -- no-such-program")
    expect(made).to_have_exit_code(1)
    expect(made.stderr).to_contain("command not found: no-such-program")
    assert names(e2e) == []
    expect(git(e2e, "branch --list")).to_equal("* main")


def test_an_agent_whose_terminal_vanished_is_lost_and_can_be_started(e2e: E2eSession) -> None:
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "work.txt").write_text("kept\n")
    ask_tmux(e2e, "kill-server")
    expect(e2e.run("mngr wait fix LOST --timeout 60s")).to_succeed()
    expect(e2e.run("mngr start fix")).to_succeed()
    expect(state(e2e, "fix")).to_equal("RUNNING")
    expect(work_dir(e2e, "fix") / "work.txt").to_have_content("kept\n")


def test_a_broken_settings_file_is_named_and_can_be_mended(e2e: E2eSession) -> None:
    ended(e2e, "quick")
    settings = host_dir(e2e) / "settings.toml"
    settings.write_text("oops\n")
    listed = e2e.run("mngr list")
    expect(listed).to_have_exit_code(2)
    expect(listed.stderr).to_contain(f"{settings}:1:")
    expect(listed.stdout).to_be_empty()
    expect(e2e.run("mngr config path").stdout).to_equal(f"{settings}\n")
    settings.write_text("")
    assert names(e2e) == ["quick"]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("mngr list --include 'state =='", "expected a value"),
        ("mngr list --sort nmae", "name"),
        ("mngr list --lable x", "--label"),
        ("mngr wait quick --timeout soon", "soon"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    e2e: E2eSession, command: str, word: str
) -> None:
    ended(e2e, "quick")
    wrong = e2e.run(command)
    expect(wrong).to_have_exit_code(2)
    expect(wrong.stdout).to_be_empty()
    expect(wrong.stderr).to_have_line_count(1)
    expect(wrong.stderr).to_contain(word)


def test_a_snapshot_that_does_not_exist_changes_nothing(e2e: E2eSession) -> None:
    given(e2e, "fix")
    (work_dir(e2e, "fix") / "work.txt").write_text("kept\n")
    missing = e2e.run("mngr snapshot restore fix yesterday")
    expect(missing).to_have_exit_code(4)
    expect(work_dir(e2e, "fix") / "work.txt").to_have_content("kept\n")


def test_a_line_too_long_for_the_terminal_is_refused_before_it_is_typed(e2e: E2eSession) -> None:
    given(e2e, "clerk", command="cat")
    refused = e2e.run("mngr message clerk", stdin="x" * 5000)
    expect(refused).to_have_exit_code(1)
    expect(e2e.run("mngr capture clerk").stdout).not_to_contain("x")
