"""Without a type and without a command, an installed agent is used; doctor says which there are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.scribe import know


@pytest.fixture
def path(local: Cli, tmp_path: Path) -> Path:
    """A PATH with what mngr needs and no agent at all."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in "sh cat find git test tmux date tar mkdir mv rm ln sort sed env".split():
        os.symlink(str(shutil.which(program)), folder / program)
    local.env["PATH"] = str(folder)
    know(local)
    return folder


def install(path: Path, program: str) -> None:
    (path / program).write_text("#!/bin/sh\nexec sleep 1000\n")
    (path / program).chmod(0o755)


def test_the_best_known_of_those_installed_is_used(local: Cli, path: Path) -> None:
    dry = ("create", "foo", "--dry-run", "--format", "json")
    install(path, "python3")  # all that a mechanic requires, but it would have no test to repair
    looked = "no coding agent found on localhost (looked for claude, codex, opencode, scribe)"
    local(*dry).fails(2, f"nothing to run: {looked}", "give a command after `--`", "npm install")
    install(path, "scribe-of-the-tests")
    found = local(*dry).ok()
    assert (found.json()["type"], found.err) == (
        "scribe",
        "Note: no agent type given: using scribe\n",
    )
    install(path, "codex")
    assert local(*dry).ok().json()["type"] == "codex"
    install(path, "claude")
    assert local(*dry).ok().json()["type"] == "claude"
    assert local(*dry, "-S", "commands.create.type=scribe").ok().json()["type"] == "scribe"
    assert local(*dry, "--", "true").ok().json()["type"] == "command"
    configured = (*dry, "-S", "commands.create.type=scribe")
    assert local(*configured, "--", "true").ok().json()["type"] == "command"
    typed = local(*configured, "--type", "scribe", "--", "true").ok().json()
    assert typed["type"] == "scribe"
    assert local(*dry[:2], "codex", *dry[2:], "--", "-x").ok().json()["type"] == "codex"
    batch = local("create", "--batch", "-", "--dry-run", input="hello there\n").ok()
    assert batch.json()["agent_name"] == "hello-there"


def test_doctor_says_which_are_usable_and_what_to_type(local: Cli, path: Path) -> None:
    nobody = {
        row["check"]: row for row in local("doctor", "--format", "json").ok().json()["checks"]
    }
    assert nobody["agents"]["status"] == "warning"
    assert "mngr create NAME mechanic" in nobody["agents"]["remedy"]
    assert nobody["agent claude"]["status"] == "absent"
    assert "npm install" in nobody["agent claude"]["remedy"]
    assert nobody["agent scribe"]["remedy"] == "get a pen"
    assert nobody["agent mechanic"]["status"] == "absent"
    install(path, "claude")
    found = local("doctor", "--format", "json").ok().json()["checks"]
    some = {row["check"]: row for row in found}
    assert (some["agent claude"]["status"], some["agent claude"]["remedy"]) == ("ok", "")
    assert some["agent codex"]["status"] == "absent"
    assert "agents" not in some
