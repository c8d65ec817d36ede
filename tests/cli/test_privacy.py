"""What docs/privacy.md says of every command: no connections, no secrets in arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Cli

# Python runs it at the start of every process; it writes down what each connects to and starts.
SPY = """
import sys

def spy(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        told = f"connected {args!r}"
    elif event in ("os.posix_spawn", "os.exec", "subprocess.Popen"):
        told = f"started {args[1]!r}"
    else:
        return
    with open(LOG, "a") as log:
        log.write(told + "\\n")

sys.addaudithook(spy)
"""


@pytest.fixture
def log(mngr: Cli) -> Path:
    """The connections and programs of every command that follows."""
    path = mngr.base / "spied"
    spy = mngr.base / "spy" / "sitecustomize.py"
    spy.parent.mkdir()
    spy.write_text(SPY.replace("LOG", repr(str(path))))
    mngr.env["PYTHONPATH"] = f"{spy.parent}:{mngr.env['PYTHONPATH']}"
    return path


def test_no_command_connects_to_anything(mngr: Cli, log: Path) -> None:
    mngr.create("foo", "--label", "team=web")
    for words in (
        ["list", "--fields", "name,state,ahead,dirty"],
        ["show", "foo"],
        ["doctor"],
        ["usage"],
        ["plugin", "list"],
        ["provider", "list"],
        ["tmr", "list"],
        ["help", "create"],
        ["message", "foo", "-m", "hello"],
        ["snapshot", "create", "foo"],
        ["clone", "foo", "twin"],
        ["destroy", "-f", "foo", "twin"],
        ["gc"],
    ):
        mngr(*words)
    told = log.read_text()
    assert told.count("started") > 20 and "connected" not in told, told


def test_a_variable_is_in_a_file_of_its_agent_and_in_no_argument(mngr: Cli, log: Path) -> None:
    file = mngr.base / "variables"
    file.write_text("TOKEN=s3cret\n")
    mngr.create("foo", "--env-file", str(file))
    mngr("clone", "foo", "twin").ok()
    mngr("restart", "foo").ok()
    assert mngr("exec", "foo", "twin", 'echo "$TOKEN"').ok().out.count("s3cret") == 2
    assert "s3cret" not in log.read_text()
    homes = {mngr.home, mngr.controller_home}
    files = [path for home in homes for path in home.rglob("*") if path.is_file()]
    found = [path for path in files if b"s3cret" in path.read_bytes()]
    assert {path.relative_to(mngr.home / "agents").parts[1] for path in found} == {"env"}
    assert len(found) == 2 and all(path.stat().st_mode & 0o77 == 0 for path in found)
