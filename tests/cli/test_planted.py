"""An agent owns its state directory: whatever it writes there, every command returns."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import Cli, Result

pytestmark = pytest.mark.dear

NONE = ("--transfer", "none")
NAMES = (
    *("started", "exit", "outcome.json", "events.jsonl", "screen.txt", "transcript", "status"),
    *(
        "agent.99.json",
        "agent.999999999999999999999999.json",
        "signals/a.json",
        "signals/b\nc.json",
    ),
    *("stdout", "stderr", "begun", "limits", "watcher", "metered", "launch.sh", "publish"),
)
PLANTS = ("pipe", "zero", "folder", "sparse", "dangling")
PATIENCE = 40
"""Seconds for one command, on a loaded machine; each takes a fraction of one."""


def plant(kind: str, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 2 << 30)
    else:
        path.symlink_to("/dev/zero" if kind == "zero" else "/nowhere")


def returns(mngr: Cli, *words: str, code: int | None = 0) -> Result:
    try:
        done = mngr(*words, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"mngr {' '.join(words)} hangs") from None
    assert "Traceback" not in done.err and "internal error" not in done.err, done.err
    assert code is None or done.code == code, f"{words}: {done.code} {done.out} {done.err}"
    return done


def test_every_command_returns_whatever_an_agent_put_in_the_place_of_its_files(mngr: Cli) -> None:
    mngr.create("good", *NONE)
    for kind in PLANTS:
        mngr.create(kind, *NONE)
    folders = {kind: mngr.state_dir(kind) for kind in PLANTS}
    for kind, folder in folders.items():
        for name in NAMES:
            plant(kind, folder / name)
    listed = returns(mngr, "list", "--format", "json").json()["agents"]
    assert {a["name"] for a in listed} == {"good", *PLANTS}
    assert {a["state"] for a in listed} == {"RUNNING"}, "their terminals live"
    for words in (
        ("gc", "--dry-run"),
        ("doctor",),
        ("event", "pipe"),
        ("event", "zero"),
        ("capture", "pipe"),
        ("transcript", "pipe"),
        ("exec", "pipe", "--", "true"),
        ("complete", "bash", "1", "mngr", "stop", ""),
        ("wait", "good", *PLANTS, "--timeout", "0.1"),
    ):
        returns(mngr, *words, code=None)
    returns(mngr, "label", *PLANTS, "a=b")
    assert mngr.agent("pipe")["labels"]["a"] == "b"
    returns(mngr, "rename", "pipe", "fifo")
    returns(mngr, "rename", "fifo", "pipe")
    stopped = returns(mngr, "stop", *PLANTS)
    assert stopped.out.splitlines() == [f"Stopped {kind}." for kind in PLANTS]
    for kind in ("pipe", "folder"):
        if not (folders[kind] / "screen.txt").is_dir():
            plant(kind, folders[kind] / "screen.txt")
        returns(mngr, "capture", kind, code=4)
        returns(mngr, "event", kind)
    returns(mngr, "start", *PLANTS, code=None)
    returns(mngr, "destroy", "--force", *PLANTS)
    assert [a["name"] for a in returns(mngr, "list", "--format", "json").json()["agents"]] == [
        "good"
    ]
    returns(mngr, "restore", "pipe")
    assert mngr.state("pipe") == "STOPPED"
