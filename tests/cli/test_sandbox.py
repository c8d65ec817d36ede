"""`create --sandbox`: what an agent cannot reach, and that nothing runs where walls do not hold."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.agents import hooks
from mngr.hosts import bubblewrap
from tests.support.cli import Cli, until

pytestmark = [
    pytest.mark.dear,
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap"),
]


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server on this machine's loopback that says hello."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                connection.sendall(b"hello\n")
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def connect(port: int) -> str:
    return f"bash -c 'cat < /dev/tcp/127.0.0.1/{port}'"


def test_a_sandboxed_agent_reaches_its_work_and_nothing_of_the_user(mngr: Cli, server: int) -> None:
    secret = mngr.user_home / "secret"
    secret.write_text("a secret\n")
    outside = mngr.base / "outside"
    script = f"""
        cat {secret}; cat {mngr.home}/names/*; ls {mngr.repo}/README; {connect(server)}
        echo x > {outside}; echo x > /usr/x; echo x > ~/note; echo x > /tmp/note; echo x > here
        echo "$HOME"; cat /proc/{os.getpid()}/environ; ls /home /root; cat /etc/shadow; true
    """
    mngr.create("safe", "--sandbox", "--", "sh", "-c", f"({script}) > out 2>&1")
    until(lambda: mngr.state("safe") == "DONE", what="the agent ends")
    work = mngr.work_dir("safe")
    told = (work / "out").read_text()
    assert "a secret" not in told and "hello" not in told and "README\n" not in told, told
    assert "Tester" not in told and "agent_id" not in told and "root:" not in told, told
    assert str(mngr.user_home) in told.splitlines(), told
    assert (work / "here").exists() and not outside.exists()
    assert not (mngr.user_home / "note").exists() and not Path("/tmp/note").exists()
    agent = mngr.agent("safe")
    assert agent["sandbox"] == "offline"
    assert mngr("capture", "safe").ok().out == "", "bwrap has nothing to say"


def test_exec_goes_into_the_same_sandbox(mngr: Cli, server: int) -> None:
    (mngr.user_home / "secret").write_text("a secret\n")
    mngr.create("safe", "--sandbox=offline")
    done = mngr("exec", "safe", f"cat {mngr.user_home}/secret; {connect(server)}; echo over")
    assert done.out == "over\n" and "bwrap" not in done.err
    assert mngr("exec", "safe", "exit 7").code == 7


def test_an_open_sandbox_has_the_network_and_no_home(local: Cli, server: int) -> None:
    (local.user_home / "secret").write_text("a secret\n")
    local.create("safe", "--sandbox", "open")
    assert local("exec", "safe", connect(server)).out == "hello\n"
    assert local("exec", "safe", f"cat {local.user_home}/secret").code == 1


@pytest.mark.parametrize("transfer", ["git-worktree", "git-mirror", "rsync"])
def test_a_sandboxed_agent_commits(mngr: Cli, transfer: str) -> None:
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = [f"--env=GIT_{name}=n@x" for name in names]
    mngr.create("safe", "--sandbox", "--transfer", transfer, *identity)
    mngr("exec", "safe", "echo x > f && git add f && git commit -qm 'In the box'").ok()
    assert "In the box" in mngr("exec", "safe", "git log --oneline").ok().out
    if transfer == "git-worktree":
        assert "In the box" in mngr.git("log", "--oneline", "mngr/safe")
        hooks = mngr.repo / ".git/hooks/post-commit"
        assert mngr("exec", "safe", f"echo evil > {hooks}").code
        assert mngr("exec", "safe", f"git config -f {mngr.repo}/.git/config a.b c").code
        assert not hooks.exists()
    elif transfer == "git-mirror":
        mngr("pull", "safe").ok()


def test_windows_and_a_second_launch_are_inside_too(local: Cli) -> None:
    (local.user_home / "secret").write_text("a secret\n")
    look = f"cat {local.user_home}/secret >"
    local.create(
        "safe", "--sandbox", "-w", f"more={look} more; echo over >> more",
        "--", "sh", "-c", f"{look} out; echo over >> out; exec sleep 1000",
    )  # fmt: skip
    work = local.work_dir("safe")
    for name in ("out", "more"):
        until(lambda: (work / name).exists() and (work / name).read_text() == "over\n")  # noqa: B023
    # It may write its own record, and still not take its sandbox off.
    record = max(local.state_dir("safe").glob("agent.*.json"))
    local("exec", "safe", f'sed -i \'s/"sandbox":"offline"/"sandbox":""/\' {record}').ok()
    assert json.loads(record.read_text())["sandbox"] == ""
    local("stop", "safe").ok()
    (work / "out").unlink()
    local("start", "safe").ok()
    until(lambda: (work / "out").exists() and (work / "out").read_text() == "over\n")


REFUSING = "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
OPEN = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'


@pytest.mark.parametrize(
    ("program", "why"), [(REFUSING, "No permissions"), (OPEN, "is not closed")]
)
def test_nothing_runs_where_the_walls_do_not_hold(local: Cli, program: str, why: str) -> None:
    fake = local.base / "fake"
    fake.mkdir()
    path = {"PATH": f"{fake}:{local.env['PATH']}"}
    (fake / "bwrap").write_text(program)
    (fake / "bwrap").chmod(0o755)
    ran = local.base / "ran"
    words = ("create", "safe", "--no-connect", "--sandbox", "--", "touch", str(ran))
    local(*words, env=path).fails(1, "safe was not started", why)
    assert not ran.exists() and agents(local) == []


def agents(cli: Cli) -> list[dict[str, object]]:
    found: list[dict[str, object]] = cli("list", "--format", "json").ok().json()["agents"]
    return found


def test_a_start_fails_closed_too(local: Cli) -> None:
    fake = local.base / "fake"
    fake.mkdir()
    local.env["PATH"] = f"{fake}:{local.env['PATH']}"
    ran = "echo x >> ran; sleep 1000"
    local.create("safe", "--sandbox", "--", "sh", "-c", ran)
    local("stop", "safe").ok()
    (local.work_dir("safe") / "ran").unlink()
    (fake / "bwrap").write_text(REFUSING)
    (fake / "bwrap").chmod(0o755)
    local("start", "safe")
    agent = local.agent("safe")
    assert agent["state"] == "FAILED" and "No permissions" in agent["state_reason"], agent
    assert not (local.work_dir("safe") / "ran").exists()


def test_modes_are_said_in_words_that_exist(local: Cli) -> None:
    words = ("create", "safe", "--no-connect")
    local(*words, "--sandbox=ofline", "--", "true").fails(2, "'ofline' is not offline or open")
    bare = {"PATH": f"{without_bwrap(local)}"}
    local(*words, "--sandbox", "--", "true", env=bare).fails(1, "bubblewrap is not installed")
    assert agents(local) == []


def without_bwrap(cli: Cli) -> Path:
    folder = cli.base / "programs"
    folder.mkdir()
    for place in cli.env["PATH"].split(":"):
        for each in Path(place).glob("*") if Path(place).is_dir() else ():
            if each.name != "bwrap" and not (folder / each.name).exists():
                (folder / each.name).symlink_to(each)
    return folder


PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda p: "/" + "/".join(p))


@given(st.lists(PATHS, max_size=6))
def test_outermost_holds_every_path_once(paths: list[str]) -> None:
    found = bubblewrap.outermost(paths)
    assert all(any(bubblewrap.is_within(path, each) for each in found) for path in paths)
    assert not any(bubblewrap.is_within(a, b) for a in found for b in found if a != b)


def test_a_hook_speaks_for_the_agents_own_program_inside(local: Cli) -> None:
    """Processes have other numbers there than the launcher, which is outside, knows of."""
    local.create("safe", "--sandbox")
    folder = local.state_dir("safe")
    (folder / "hook.sh").write_bytes(hooks.script(str(folder), hops=3))
    local("exec", "safe", f"echo '{{}}' | sh {folder}/hook.sh Stop").ok()
    assert json.loads((folder / "signals/Stop.json").read_text())["input"] == {}
