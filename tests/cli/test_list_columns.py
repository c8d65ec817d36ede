"""`list` columns that look into work directories: right, and free for who does not ask."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.cli import Cli


def numbers(cli: Cli) -> dict[str, list[int | None]]:
    rows = cli("list", "--fields", "name,ahead,behind,dirty", "--format", "json").ok()
    return {r["name"]: [r["ahead"], r["behind"], r["dirty"]] for r in rows.json()["agents"]}


def test_they_count_commits_and_changed_files(mngr: Cli) -> None:
    mngr.create("idle")
    mngr.create("busy")
    work = mngr.work_dir("busy")
    for count in range(3):
        (work / f"f{count}").write_text("x")
        mngr.commit("work", cwd=work)
    mngr.write("upstream", "x")
    mngr.commit("upstream")
    (work / "dir").mkdir()
    for name in ("dir/a", "dir/b c"):
        (work / name).write_text("x")
    (work / "f0").unlink()
    mngr.git("mv", "f1", "moved", cwd=work)
    assert numbers(mngr) == {"idle": [0, 1, 0], "busy": [3, 1, 5]}
    mngr.commit("all of it", cwd=work)
    mngr.git("merge", "-q", "--no-edit", "main", cwd=work)
    assert numbers(mngr)["busy"][1] == 0


@pytest.mark.dear
def test_filters_orders_and_templates_ask_for_them_too(mngr: Cli) -> None:
    mngr.create("clean")
    mngr.create("dirty-one")
    (mngr.work_dir("dirty-one") / "x").write_text("x")
    only = mngr("list", "--include", "dirty > 0", "--format", "{name} {dirty}").ok().out
    assert only == "dirty-one 1\n"
    assert mngr("list", "--exclude", "dirty == 0", "--format", "{name}").ok().out == "dirty-one\n"
    assert mngr("list", "--sort", "-dirty", "--format", "{name}").ok().out == "dirty-one\nclean\n"
    assert "dirty" not in mngr("list", "--format", "json").ok().json()["agents"][0]
    mngr("list", "--fields", "name,dirt").fails(2, "did you mean 'dirty'?")


def test_what_is_gone_or_no_repository_is_null(mngr: Cli) -> None:
    plain = mngr.base / "plain"
    plain.mkdir()
    mngr.create("plain", "--from", str(plain))
    mngr.create("gone")
    shutil.rmtree(mngr.work_dir("gone"))
    assert numbers(mngr) == {"plain": [None, None, None], "gone": [None, None, None]}
    assert mngr("list", "--include", "ahead == null", "--ids").ok().out.count("\n") == 2


def test_nobody_pays_for_what_nobody_asked(local: Cli, tmp_path: Path) -> None:
    """git itself is counted: a stub in front of it writes down every call."""
    local.create("foo")
    log, stub = tmp_path / "calls", tmp_path / "bin" / "git"
    stub.parent.mkdir()
    real = shutil.which("git")
    stub.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    stub.chmod(0o755)
    counted = {"PATH": f"{stub.parent}:{local.env['PATH']}"}
    local("list", env=counted).ok()
    local("list", "--format", "json", env=counted).ok()
    local("list", "--include", 'name != "dirty" && labels.ahead != "x"', env=counted).ok()
    assert not log.exists()
    local("list", "--fields", "name,dirty", env=counted).ok()
    assert len(log.read_text().splitlines()) == 1
    work = local.work_dir("foo")
    where = ("rev-parse", "--path-format=absolute", "--git-path", "index")
    index = Path(local.git(*where, cwd=work))
    before = index.stat().st_mtime_ns
    os.utime(work / "README", (1, 1))
    local("list", "--fields", "dirty", env=counted).ok()
    assert index.stat().st_mtime_ns == before, "looking wrote the index"
