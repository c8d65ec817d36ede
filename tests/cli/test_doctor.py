"""doctor says what is wrong and what to do; --fix does it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.support.cli import Cli, Result

NONE = ("--transfer", "none")


def found(result: Result) -> dict[str, dict[str, str]]:
    return {row["check"]: row for row in json.loads(result.out)}


def test_a_healthy_world_has_no_problems(mngr: Cli) -> None:
    mngr.create("foo", *NONE)
    done = mngr("doctor").ok()
    assert done.out.splitlines()[0].split() == ["CHECK", "STATUS", "DETAIL", "REMEDY"]
    checks = found(mngr("doctor", "--format", "json").ok())
    for name in ("git", "tmux", "home", "records"):
        assert checks[name]["status"] == "ok", checks[name]


def test_a_broken_record_is_a_problem_with_a_remedy(mngr: Cli) -> None:
    folder = mngr.home / "agents" / f"agent-{3:032x}"
    folder.mkdir(parents=True)
    (folder / "agent.1.json").write_text("{")
    done = mngr("doctor", "--format", "json")
    assert done.code == 1
    row = found(done)["records"]
    assert row["status"] == "problem"
    assert str(folder) in row["remedy"]
    assert mngr("doctor", "--fix").code == 1, "a record is never thrown away"
    assert (folder / "agent.1.json").exists()


def test_missing_programs_are_named(local: Cli, tmp_path: Path) -> None:
    few = tmp_path / "bin"
    few.mkdir()
    for program in ("sh", "cat", "find", "git", "test"):
        os.symlink(str(shutil.which(program)), few / program)
    checks = found(local("doctor", "--format", "json", env={"PATH": str(few)}))
    assert (checks["tmux"]["status"], checks["git"]["status"]) == ("problem", "ok")
    assert "install tmux 3.2 or newer" in checks["tmux"]["remedy"]
    (few / "tmux").write_text("#!/bin/sh\necho tmux 2.9\n")
    (few / "tmux").chmod(0o755)
    old = found(local("doctor", "--format", "json", env={"PATH": str(few)}))["tmux"]
    assert (old["status"], old["detail"]) == ("problem", "tmux 2.9")


def test_fixing_mends_what_it_says(mngr: Cli) -> None:
    mngr.create("kept", *NONE)
    mngr.create("old", *NONE, "--", "true")
    mngr("destroy", "old").ok()
    mngr.controller_home.mkdir(exist_ok=True)
    mngr.controller_home.chmod(0o777)
    stray = ["tmux", "-S", mngr.socket, "new-session", "-d", "-s", "stray", "sleep", "1000"]
    subprocess.run(stray, env=mngr.env, check=True)
    at_once = {"MNGR__TRASH__KEEP": "0s"}
    warned = mngr("doctor", "--format", "json", env=at_once).ok()
    assert {"permissions", "sessions", "leftovers"} <= set(found(warned))
    dry = mngr("doctor", "--fix", "--dry-run", env=at_once).ok().err
    assert dry.count("Would fix") == 3
    assert "stray" in mngr.tmux("list-sessions")
    said = mngr("doctor", "--fix", env=at_once).ok().err
    assert said.count("Fixed") == 3
    assert mngr.tmux("list-sessions", "-F", "#S") == f"{mngr.agent('kept')['id']}\n"
    assert mngr.controller_home.stat().st_mode & 0o022 == 0
    assert not list((mngr.home / "trash").iterdir())
    assert not {"permissions", "sessions", "leftovers"} & set(
        found(mngr("doctor", "--format", "json", env=at_once).ok())
    )


def test_wrong_input(local: Cli) -> None:
    local("doctor", "everything").fails(2, "everything")
    local("doctor", "--fixx").fails(2, "--fixx", "--fix")
