"""Test everything that the plugin adds, through the command line. It must be installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


class World:
    """A home of mngr and a current directory."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.cwd = base / "here"
        self.cwd.mkdir()
        self.env = {
            "HOME": str(base),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "MNGR_HOST_DIR": str(self.home),
            "MNGR__STOP__GRACE": "2s",
        }

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "mngr", *words],
            check=False,
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shows(self, name: str, text: str) -> None:
        deadline = time.monotonic() + 15
        while text not in self("capture", name):
            assert time.monotonic() < deadline, f"{text!r} never came up"
            time.sleep(0.05)


@pytest.fixture
def mngr(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    for agent in world("list", "--ids").split():
        world("destroy", "--force", agent)


def test_the_plugin_is_listed_with_all_that_it_adds(mngr: World) -> None:
    listed = json.loads(mngr("plugin", "list", "--format", "json"))["plugins"]
    (row,) = [row for row in listed if row["name"] == "hello"]  # mngr has its own plugins
    assert (row["name"], row["distribution"], row["version"]) == ("hello", "mngr-hello", "0.1.0")
    assert (row["enabled"], row["problem"]) == (True, "")
    assert row["registers"] == {
        "agent_types": ["parrot"],
        "providers": ["sandbox"],
        "commands": ["hello"],
        "events": ["agent_created", "agent_destroyed"],
    }


def test_a_parrot_repeats_its_messages_and_listens_again_after_a_restart(mngr: World) -> None:
    mngr("create", "polly", "parrot", "--no-connect", "-m", "good morning")
    mngr.shows("polly", "Polly says: good morning")
    mngr("wait", "polly", "WAITING", "--timeout", "20s")
    mngr("message", "polly", "-m", "ahoy")
    mngr.shows("polly", "Polly says: ahoy")
    mngr("restart", "polly")
    mngr("wait", "polly", "WAITING", "--timeout", "20s")


def test_an_agent_in_the_sandbox_has_another_home_and_nothing_of_ours(mngr: World) -> None:
    mngr.env["SECRET"] = "hunter2"
    mngr("create", "guest", "--provider", "sandbox", "--no-connect", "--", "sh", "-c", "env; cat")
    mngr.shows("guest", f"HOME={mngr.home}/sandbox/user")
    assert "hunter2" not in mngr("capture", "guest")
    (agent,) = json.loads(mngr("list", "--format", "json"))["agents"]
    assert agent["host"]["provider_name"] == "sandbox"
    assert (mngr.home / "sandbox" / "agents" / agent["id"]).is_dir()
    mngr("message", "guest@sandbox", "-m", "hello out there")
    mngr.shows("guest", "hello out there")


def test_hello_greets_agents(mngr: World) -> None:
    assert mngr("hello") == "Nobody is here\n"
    mngr("create", "ann", "--no-connect", "--", "true")
    mngr("create", "bob", "--no-connect", "--", "true")
    assert mngr("hello", "--format", "{greeting}") == "Hello, ann!\nHello, bob!\n"
    assert mngr("hello", "bob", "--greeting", "Salut", "--format", "{greeting}") == "Salut, bob!\n"
    assert "mngr hello --greeting Salut" in mngr("help", "hello")


def test_the_diary_notes_who_came_and_who_went(mngr: World) -> None:
    mngr("create", "ann", "parrot", "--no-connect")
    mngr("destroy", "--force", "ann")
    lines = (mngr.home / "diary.jsonl").read_text().splitlines()
    came, went = (json.loads(line) for line in lines)
    assert (came["event"], came["agent_name"]) == ("agent_created", "ann")
    assert (came["agent_type"], came["host_name"]) == ("parrot", "localhost")
    assert (went["event"], went["agent_id"]) == ("agent_destroyed", came["agent_id"])
