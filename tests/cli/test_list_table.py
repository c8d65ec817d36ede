"""The table that people see: what each agent is at and has done, in the width of the terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.app import tables
from mngr.model.durations import written
from tests.support.cli import Cli
from tests.support.places import ended
from tests.support.screen import Screen

LONG = "a-name-as-long-as-names-get-" + "x" * 35


def table(mngr: Cli, *options: str) -> dict[str, list[str]]:
    return {
        line.split()[0]: line.split()[1:] for line in mngr("list", *options).ok().out.splitlines()
    }


def test_it_counts_commits_and_their_lines(local: Cli) -> None:
    local.create("busy")
    local.create("idle")
    work = local.work_dir("busy")
    (work / "README").unlink()
    for name, count in (("n", 12), ("m", 2)):
        (work / name).write_text("line\n" * count)
        local.commit(name, cwd=work)
    wanted = ["sleep", "1000", "2", "+14", "-1"]
    for _ in range(2):  # the second time from the cache
        assert table(local)["busy"][2:] == wanted
        assert table(local)["idle"][2:] == ["sleep", "1000", "0"]
    (span,) = json.loads((local.home / "cache" / "changes.json").read_text())
    assert span[2:] == [2, 14, 1]
    local.git("pack-refs", "--all")
    assert table(local)["busy"][2:] == wanted
    listed = local("list", "busy", "--fields", "name,changes", "--format", "json").ok().json()
    changes = {"commits": 2, "added": 14, "removed": 1}
    assert listed["agents"] == [{"name": "busy", "changes": changes}]
    assert table(local, "--no-changes")["busy"][2:] == ["sleep", "1000"]
    assert "CHANGES" not in local("list", "--no-changes").ok().out


def test_it_counts_commits_that_only_clones_have(mngr: Cli) -> None:
    names = ("one", "two", "three")
    for lines, name in enumerate(names):
        mngr.create(name, "--transfer", "git-mirror")
        for line in range(lines):
            (mngr.work_dir(name) / f"{line}").write_text("line\n")
            mngr.commit("more", cwd=mngr.work_dir(name))
    for _ in range(2):  # the second time from the cache
        found = [table(mngr)[name][4:] for name in names]
        assert found == [["0"], ["1", "+1", "-0"], ["2", "+2", "-0"]]
    work = mngr.work_dir("two")
    mngr.git("gc", "-q", cwd=work)
    mngr.git("checkout", "-q", "--detach", cwd=work)
    assert table(mngr)["two"][4:] == ["1", "+1", "-0"]


def test_it_counts_commits_of_a_clone_whose_path_git_would_split(tmp_path: Path) -> None:
    cli = Cli(tmp_path / 'a:"b"\\c')
    cli.create("foo", "--transfer", "git-mirror")
    (cli.work_dir("foo") / "file").write_text("line\n")
    cli.commit("more", cwd=cli.work_dir("foo"))
    assert table(cli)["foo"][4:] == ["1", "+1", "-0"]
    ended(cli)


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror"])
def test_an_agent_at_no_commit_hides_no_numbers_of_others(local: Cli, transfer: str) -> None:
    for name in ("good", "evil"):
        local.create(name, "--transfer", transfer)
        (local.work_dir(name) / name).write_text("line\n")
        local.commit("more", cwd=local.work_dir(name))
    git = local.git("rev-parse", "--absolute-git-dir", cwd=local.work_dir("evil"))
    Path(git, "HEAD").write_text("f" * 40)
    for _ in range(2):
        found = table(local)
        assert [found[name][4:] for name in ("good", "evil")] == [["1", "+1", "-0"], []]


def test_a_pipe_among_the_objects_of_an_agent_holds_up_no_list(local: Cli) -> None:
    names = ("evil", "good")
    for name in names:
        local.create(name)
        (local.work_dir(name) / "file").write_text(f"{name}\n")
        local.commit("more", cwd=local.work_dir(name))
    tip = local.git("rev-parse", "mngr/evil")
    pipe = local.repo / ".git" / "objects" / tip[:2] / tip[2:]
    pipe.unlink()
    os.mkfifo(pipe)
    found = table(local)
    assert [found[name][4:] for name in names] == [[], ["1", "+1", "-0"]]
    rows = json.loads((local.home / "cache" / "changes.json").read_text())
    assert sorted(len(row) for row in rows) == [2, 5], "the next list does not ask again"


def test_an_agent_cannot_mislead_or_hold_up_the_count(local: Cli, tmp_path: Path) -> None:
    local.create("foo")
    head = local.repo / ".git" / "worktrees" / Path(local.agent("foo")["work_dir"]).name / "HEAD"
    for planted in ("ref: refs/../../../etc/passwd", "--output=x", "", "f" * 40, "x" * 9000):
        head.write_text(planted)
        assert table(local)["foo"][2:] == ["sleep", "1000"], planted
    (local.home / "cache").mkdir(exist_ok=True)
    (local.home / "cache" / "changes.json").write_text("[[1]]")
    head.write_text("f" * 40)
    assert table(local)["foo"][2:] == ["sleep", "1000"]


def test_hosts_are_named_only_when_there_are_several(mngr: Cli) -> None:
    mngr.create("one", "--transfer", "none")
    assert "HOST" not in mngr("list").ok().out
    if mngr.provider != "local":
        mngr("create", "two@localhost", "--provider", "local", "--no-connect", "--transfer",
             "none", "--", "sleep", "1000").ok()  # fmt: skip
        assert table(mngr)["NAME"][1] == "HOST"
        assert [table(mngr)[name][1] for name in ("one", "two")] == ["bare", "localhost"]
        mngr.home, elsewhere = mngr.controller_home, mngr.home
        mngr.close()  # of the two hosts the fixture ends only the other one
        mngr.home = elsewhere


def test_no_line_is_wider_than_the_terminal(local: Cli) -> None:
    none = ("--transfer", "none")
    local.create("short", *none, "--", "sh", "-c", f"exit 3 # {'very ' * 40}")
    local.create(
        LONG, *none, "--", "sh", "-c", "echo '漢字漢字漢字' | tee; exit 4 # 漢字漢字漢字漢字"
    )
    local("wait", "short", LONG, "FAILED").ok()
    with Screen(local) as screen:
        for width in (80, 40):
            screen.tmux("resize-window", "-x", str(width), "-y", "40")
            # tmux resizes the terminal a moment later. And the shell adds the numbers
            # up, so that the mark is not on the screen when it is typed.
            resized = f'until [ "$(stty size)" = "40 {width}" ]; do sleep 0.01; done'
            command = " ".join(local.argv("list"))
            screen.type(f"{resized}; clear; {command}; echo end-$(({width} + 0))")
            screen.shows(f"end-{width}")
            lines = screen.tmux("capture-pane", "-p").splitlines()
            rows = [line for line in lines if line.startswith(("NAME", "short", "a-name"))]
            assert len(rows) == 3 and all(tables.width_of(row) <= width for row in rows), rows
            after = lines[lines.index(rows[-1]) + 1]
            assert after == f"end-{width}", "a line was wrapped"
        assert "\x1b[31mFAILED" in screen.tmux("capture-pane", "-p", "-e")


@given(st.lists(st.integers(1, 90), min_size=1, max_size=9), st.integers(10, 200))
def test_widths_always_fit(widths: list[int], total: int) -> None:
    found = tables.fitted(widths, total)
    assert len(found) == 1 or sum(found) + 2 * (len(found) - 1) <= total
    assert all(one <= natural for one, natural in zip(found, widths, strict=False))
    if sum(widths) + 2 * (len(widths) - 1) <= total:
        assert found == widths


@given(st.text(), st.integers(1, 30))
def test_a_cut_text_has_the_width_asked_for(text: str, width: int) -> None:
    assert tables.width_of(tables.cut(text, width)) <= width


def test_ages_are_written_as_people_do() -> None:
    assert [written(s, 1) for s in (-3, 0, 59, 60, 3599, 3600, 86_400, 9e6)] == [
        *("0s", "0s", "59s", "1m", "59m", "1h", "1d", "104d")
    ]
    assert [written(s) for s in (0, 61, 5400, 90_000)] == ["0s", "1m 1s", "1h 30m", "1d 1h"]
