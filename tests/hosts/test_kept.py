"""Hosts that print more than fits into memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, until
from tests.support.folders import on_folders

# mngr may use 3 GiB of address space: without a limit of its own, endless output exceeds this.
LIMITED = ("sh", "-c", 'ulimit -v 3145728; exec "$@"', "sh")
# It begins as a command does, with the mark on stdout.
ENDLESS = 'sh -c \'printf "\\n%s\\n" "$4"; exec yes\' {handle}'
EXECUTE = """
import sys
from mngr.api import Mngr
Mngr().exec("x", ["sh", "-c", sys.argv[1]], timeout=60)
"""


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Cli]:
    with on_folders(tmp_path) as cli:
        yield cli


def running(words: str) -> bool:
    lines = (each.read_bytes() for each in Path("/proc").glob("[0-9]*/cmdline") if each.exists())
    return any(words.encode() in line.replace(b"\0", b" ") for line in lines)


def test_a_host_that_answers_endlessly_is_unreachable(folders: Cli) -> None:
    folders("create", "x@.folders", "--no-connect", "--", "sleep", "600").ok()
    folders.within = LIMITED
    listed = folders(
        "list", "--format", "json", env={"MNGR__PROVIDERS__FOLDERS__EXEC": ENDLESS}
    ).ok()
    assert [each["state"] for each in listed.json()["agents"]] == ["UNREACHABLE"]
    assert "host x printed more than 256 MiB" in listed.err
    assert folders("list", "--format", "{name} {state}").ok().out == "x RUNNING\n"


@pytest.mark.parametrize("place", ["", "@.folders"])
def test_endless_output_that_is_kept_ends_the_command(folders: Cli, place: str) -> None:
    folders("create", f"x{place}", "--no-connect", "--", "sleep", "600").ok()
    folders.within = LIMITED
    mark = f"endless {folders.base}"
    words = [*LIMITED, sys.executable, "-c", EXECUTE, f"yes '{mark}'"]
    done = subprocess.run(
        words, env=folders.env, cwd=folders.repo, capture_output=True, check=False
    )
    assert b"printed more than 512 MiB of output" in done.stderr, done.stderr
    until(lambda: not running(mark), what="the command ended")


@pytest.mark.soak
def test_uncommitted_files_of_your_own_may_be_larger(folders: Cli) -> None:
    with (folders.repo / "large").open("wb") as file:
        file.truncate(600 << 20)
    words = ("x@.folders", "--include-dirty", "--no-connect", "--", "sleep", "600")
    folders("create", *words, timeout=120).ok()
    assert (folders.work_dir("x") / "large").stat().st_size == 600 << 20
