"""What the tests of the tutorial say again and again, through the same commands a reader has."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

from mngr.hosts import tmux
from mngr_e2e import E2eSession, expect

READS_LINES = """sh -c 'while read line; do echo "noted: $line"; done'"""


# agents that a test begins with


def given(e2e: E2eSession, name: str, options: str = "", command: str = "sleep 1000") -> None:
    words = f"mngr create {name} --no-connect --quiet {options} -- {command}"
    expect(e2e.run(words, comment="given")).to_succeed()


def ended(e2e: E2eSession, name: str, command: str = "true") -> None:
    given(e2e, name, command=command)
    expect(e2e.run(f"mngr wait {name} DONE FAILED --timeout 60s")).to_succeed()


def clerk(e2e: E2eSession) -> None:
    """One who notes what is said."""
    given(e2e, "clerk", command=READS_LINES)


def destroyed(e2e: E2eSession, name: str, file: str = "") -> None:
    """In the trash, with a precious file that git does not know."""
    given(e2e, name)
    if file:
        (work_dir(e2e, name) / file).write_text("precious\n")
    expect(e2e.run(f"mngr destroy {name} --force")).to_succeed()


def commit(e2e: E2eSession, name: str, file: str, text: str) -> None:
    work = f"echo {text} > {file}; git add {file}; git commit -qm 'Add {file}'"
    expect(e2e.run(f"mngr exec {name} {shlex.quote(work)}")).to_succeed()


def until_shown(e2e: E2eSession, name: str, text: str) -> None:
    expect(lambda: e2e.run(f"mngr capture {name}").stdout).eventually().to_contain(text)


# what is there


def names(e2e: E2eSession) -> list[str]:
    return e2e.run("mngr list --format '{name}'").stdout.split()


def show(e2e: E2eSession, name: str) -> dict[str, Any]:
    listed = e2e.run("mngr list --format json").stdout
    (agent,) = [agent for agent in json.loads(listed)["agents"] if agent["name"] == name]
    found: dict[str, Any] = agent
    found["labels"].pop("project", None)  # the same for all of them
    return found


def state(e2e: E2eSession, name: str) -> str:
    return str(show(e2e, name)["state"])


def work_dir(e2e: E2eSession, name: str) -> Path:
    return Path(show(e2e, name)["work_dir"])


def git(e2e: E2eSession, words: str) -> str:
    done = e2e.run(f"git {words}")
    expect(done).to_succeed()
    return done.stdout.strip()


def host_dir(e2e: E2eSession) -> Path:
    """mngr's home."""
    return Path(e2e.env["MNGR_HOST_DIR"])


# its tmux server


def socket(e2e: E2eSession) -> Path:
    return Path(tmux.socket_path(str(host_dir(e2e)), os.getuid()))


def ask_tmux(e2e: E2eSession, *words: str) -> list[str]:
    done = subprocess.run(["tmux", "-S", socket(e2e), *words], capture_output=True, check=False)
    return done.stdout.decode().splitlines()


def clients(e2e: E2eSession, condition: str = "1") -> int:
    """How many terminals are attached, of those where tmux says 1 to the condition."""
    return ask_tmux(e2e, "list-clients", "-F", condition).count("1")
