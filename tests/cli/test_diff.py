"""`mngr diff`: committed, uncommitted and untracked, in one patch that applies."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.test_snapshot import busy, traces, tree
from tests.support.cli import Cli
from tests.support.screen import Screen


def test_the_patch_holds_everything_and_applies_where_the_agent_began(mngr: Cli) -> None:
    work = busy(mngr)
    before = traces(work)
    mngr("stop", "foo").ok()
    patch = subprocess.run(
        mngr.argv("diff", "foo"), env=mngr.env, cwd=mngr.repo, capture_output=True, check=True
    ).stdout
    assert traces(work) == before
    subprocess.run(["git", "apply"], input=patch, cwd=mngr.repo, env=mngr.env, check=True)
    left_out = {"a.o", "build/out"}
    assert tree(mngr.repo) == {k: v for k, v in tree(work).items() if k not in left_out}


@pytest.mark.dear
def test_parts_of_it_can_be_asked_for(mngr: Cli) -> None:
    work = busy(mngr)
    assert mngr("diff", "foo", "--commits").ok().out.split(" ", 1)[1] == "its own\n"
    uncommitted = mngr("diff", "foo", "--uncommitted").ok().out
    assert "+changed" in uncommitted and "committed" not in uncommitted
    stat = mngr("diff", "foo", "--stat").ok().out
    assert "README" in stat and "files changed" in stat and "+changed" not in stat
    only = mngr("diff", "foo", "--", "README").ok().out
    assert only.count("diff --git") == 1
    row = mngr("diff", "foo", "--format", "json", "--", "README", "run").ok().json()
    assert row["files"] == [
        {"path": "README", "added": 1, "deleted": 1},
        {"path": "run", "added": 1, "deleted": 0},
    ]
    assert row["head"] == mngr.git("rev-parse", "HEAD", cwd=work) and "+changed" in row["diff"]
    (commit,) = mngr("diff", "foo", "--commits", "--format", "json").ok().json()["commits"]
    assert commit["subject"] == "its own" and commit["author"] == "Tester"


def test_the_users_diff_settings_change_nothing(local: Cli) -> None:
    work = busy(local)
    plain = local("diff", "foo").ok().out
    for key, value in (("noprefix", "true"), ("external", "false"), ("mnemonicPrefix", "true")):
        local.git("config", f"diff.{key}", value)
    local.git("config", "color.ui", "always")
    assert local("diff", "foo").ok().out == plain
    assert work.exists()


def test_an_agent_that_did_nothing_has_an_empty_diff(mngr: Cli) -> None:
    mngr.create("foo")
    for words in ([], ["--stat"], ["--commits"], ["--uncommitted"]):
        assert mngr("diff", "foo", *words).ok().out == ""


def test_a_nested_repository_does_not_hide_the_rest(local: Cli) -> None:
    local.create("foo")
    work = local.work_dir("foo")
    (work / "inner").mkdir()
    local.git("init", "-q", cwd=work / "inner")
    (work / "inner" / "x").write_text("x")
    (work / "seen").write_text("seen\n")
    done = local("diff", "foo").ok()
    assert "+seen" in done.out
    assert "inner" in done.err and "not in this diff" in done.err


def test_wrong_input_is_refused(mngr: Cli) -> None:
    plain = mngr.base / "plain"
    plain.mkdir()
    mngr.create("plain", "--from", str(plain))
    mngr("diff", "plain").fails(1, "git repository of its own")
    mngr("diff", "plan").fails(4, "did you mean 'plain'?")
    mngr("diff").fails(2, "no agent given")
    mngr("diff", "plain", "--commits", "--stat").fails(2, "--commits cannot be used with")
    mngr.create("gone")
    subprocess.run(["rm", "-rf", str(mngr.work_dir("gone"))], check=True)
    mngr("diff", "gone").fails(1, "work directory of gone is gone")


def test_on_a_terminal_it_is_coloured_and_harmless(local: Cli) -> None:
    local.create("foo")
    work = local.work_dir("foo")
    (work / "trap").write_text("\x1b]0;owned\x07\x1b[2Jplain\n")
    with Screen(local) as screen:
        screen.mngr("diff", "foo")
        screen.shows("+plain", "new file mode")
    assert isinstance(work, Path)
