"""Agents created from a linked worktree that was removed later."""

from __future__ import annotations

import shutil

import pytest

from tests.support.cli import Cli


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("mode", ["worktree", "mirror"])
def test_the_work_of_an_agent_outlives_the_worktree_it_came_from(
    local: Cli, bare: bool, mode: str
) -> None:
    if bare:
        local.git("clone", "-q", "--bare", ".", str(local.base / "main.git"))
        shutil.rmtree(local.repo)
        local.repo = local.base / "main.git"
    feature = local.base / "feature"
    local.git("worktree", "add", "-q", "-b", "feature", str(feature))
    words = ("create", "fix", "--no-connect", "--transfer", mode, "--", "sleep", "1000")
    local(*words, cwd=feature).ok()
    work = local.work_dir("fix")
    (work / "new").write_text("x\n")
    tip = local.commit("Work", cwd=work)
    local.git("worktree", "remove", "--force", str(feature))
    assert "fix" in local("pull", "fix").ok().out
    assert local.git("rev-parse", "mngr/fix") == tip
    assert "+x" in local("diff", "fix").ok().out
    looked = local("list", "--fields", "name,ahead,dirty").ok().out
    assert looked.splitlines()[-1].split() == ["fix", "1", "0"]
    local("snapshot", "create", "fix").ok()
    local("snapshot", "destroy", "fix", "1").ok()
    local("clone", "fix", "two", "--no-connect", "--transfer", "mirror").ok()
    assert (local.work_dir("two") / "new").exists()
    local("stop", "fix").ok()
    local("start", "fix").ok()
    assert local.agent("fix")["state"] == "RUNNING"
    local("destroy", "fix").ok()  # all of it is on its branch
    local("restore", "fix").ok()
    assert local.git("branch", "--show-current", cwd=work) == "mngr/fix"
