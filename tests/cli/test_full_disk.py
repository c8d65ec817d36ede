"""A full disk: what runs can be ended, what has ended is told as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import Cli, lives

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
NONE = ("--transfer", "none")


@pytest.fixture
def small(mngr: Cli) -> Iterator[Cli]:
    """Yield a CLI whose home is on a separate disk of two megabytes."""
    mngr.home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "mngr-test", str(mngr.home)]
    subprocess.run(mount, check=True)
    yield mngr
    mngr.close()
    subprocess.run(["umount", "-l", str(mngr.home)], check=True)


def fill(home: Path) -> Path:
    filler = home / "filler"
    with open(filler, "wb", buffering=0) as file:
        while shutil.disk_usage(home).free:
            file.write(b"x" * 4096)
    return filler


def test_processes_end_though_nothing_can_be_recorded_and_that_is_said(small: Cli) -> None:
    for name in ("foo", "bar", "baz"):
        small.create(name, *NONE)
    pids = [small.agent(name)["pid"] for name in ("foo", "bar", "baz")]
    filler = fill(small.home)
    small("stop", "foo").fails(1, "foo: its processes have ended", "No space left", "listed as")
    assert [lives(pid) for pid in pids] == [False, True, True]
    some = small("stop", "foo", "bar")
    assert "is already FAILED" in some.out and "could not be recorded" in some.err
    small("destroy", "--force", "baz").fails(
        1, "baz have ended", "No space left", "nothing was moved"
    )
    assert [lives(pid) for pid in pids] == [False, False, False]
    assert small.agent("foo")["state_reason"] == "signal SIGTERM"
    if small.provider == "local":
        for words in (("rename", "foo", "other"), ("label", "foo", "a=b"), ("start", "foo")):
            full = small(*words).fails(1, f"mngr: {small.home}/", ": No space left on device")
            assert "Errno" not in full.err
    filler.unlink()
    small("start", "foo", "bar").ok()
    small("destroy", "--force", "baz").ok()
    assert small.state("foo") == "RUNNING"


def test_a_program_that_ends_on_a_full_disk_ended_as_it_did(small: Cli) -> None:
    for name, code in (("good", 0), ("bad", 3)):
        os.mkfifo(small.base / name)
        small.create(name, *NONE, "--", "sh", "-c", f"read x < {small.base / name}; exit {code}")
    fill(small.home)
    for name in ("good", "bad"):
        (small.base / name).write_text("go\n")
    small("wait", "good", "bad", "--timeout", "30").fails(1, "bad is FAILED (exit code 3)")
    assert (small.agent("good")["state"], small.agent("good")["state_reason"]) == (
        "DONE",
        "exit code 0",
    )
    assert (small.agent("bad")["state"], small.agent("bad")["exit_code"]) == ("FAILED", 3)


def test_the_doctor_says_that_the_home_cannot_be_written(small: Cli) -> None:
    words = ["--host", "bare"] if small.provider == "bare" else []
    fill(small.home)
    checks = small("doctor", "--format", "json", *words).json()["checks"]
    (home,) = [each for each in checks if each["check"] == "home"]
    assert (home["status"], "No space left" in home["detail"]) == ("problem", True), home


def test_a_cache_that_cannot_be_written_leaves_no_file(local: Cli) -> None:
    local.create("foo")
    for number in range(2):
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "mngr-test"]
        (local.work_dir("foo") / "f").write_text(str(number))
        local.commit("new", cwd=local.work_dir("foo"))
        cache = local.home / "cache"
        cache.mkdir(exist_ok=True)
        subprocess.run([*mount, str(cache)], check=True)
        try:
            fill(cache)
            assert "+1" in local("list").ok().out
            assert [each.name for each in cache.iterdir()] == ["filler"]
        finally:
            subprocess.run(["umount", "-l", str(cache)], check=True)
