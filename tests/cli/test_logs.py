"""What a program printed can be read: from its first byte, while it runs and after its end."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mngr.cli.commands.logs import cleaned
from tests.support.cli import Cli, until

NONE = ("--transfer", "none")


def log_of(mngr: Cli, name: str) -> Path:
    return mngr.home / "logs" / str(mngr.agent(name)["id"])


def test_the_log_begins_with_the_first_byte_and_outlives_the_program(mngr: Cli) -> None:
    script = r"printf 'one\n\033[31mtwo\033[0m\n\033]0;title\007three'; echo; exit 3"
    mngr.create("foo", *NONE, "--", "sh", "-c", script)
    mngr("wait", "foo", "FAILED").ok()
    until(lambda: "three" in mngr("logs", "foo").ok().out)
    assert mngr("logs", "foo").ok().out == "one\ntwo\nthree\n"
    assert mngr("log", "foo", "-n", "2").ok().out == "two\nthree\n"
    assert "\x1b[31mtwo\x1b[0m" in mngr("logs", "foo", "--raw").ok().out
    mngr("start", "foo").ok()
    mngr("wait", "foo", "FAILED").ok()
    until(lambda: mngr("logs", "foo").ok().out == "one\ntwo\nthree\n" * 2)
    assert mngr("logs", "foo", "-f").ok().out == "one\ntwo\nthree\n" * 2
    found = mngr("logs", "foo", "--format", "json").ok().json()
    assert (found["name"], found["log"]) == ("foo", "one\ntwo\nthree\n" * 2)
    assert found["id"] == mngr.agent("foo")["id"]
    mngr("stop", "foo").ok()
    assert oct(log_of(mngr, "foo").stat().st_mode & 0o777) == "0o600"


def test_following_ends_with_the_agent(mngr: Cli) -> None:
    mngr.create("foo", *NONE, "--", "sh", "-c", "echo begin; read line; echo got $line")
    with mngr.start("logs", "foo", "--follow") as follower:
        assert follower.stdout
        assert follower.stdout.readline() == b"begin\n"
        mngr("message", "foo", "-m", "hello").ok()
        out, err = follower.communicate(timeout=30)
    assert out.endswith(b"got hello\n"), out
    assert (follower.returncode, err) == (0, b"")


def test_a_log_is_rotated_and_keeps_the_end(local: Cli) -> None:
    local.create("loud", *NONE, "--", "sh", "-c", "yes 0123456789 | head -n 1000000; echo last")
    local("wait", "loud", "DONE").ok()
    log = log_of(local, "loud")
    until(lambda: local("logs", "loud", "-n", "1").ok().out == "last\n")
    sizes = [path.stat().st_size for path in (log, Path(f"{log}.1"))]
    assert sizes[0] < 6 << 20 and 4 << 20 <= sizes[1] < 6 << 20, sizes
    assert len(local("logs", "loud").ok().out) > 4 << 20
    local("destroy", "loud", "--force").ok()
    assert log.exists(), "restore would miss it"
    local("restore", "loud", "--purge", "--force").ok()
    assert os.listdir(log.parent) == []


def test_a_recorded_agent_has_a_log_too(local: Cli) -> None:
    local.create("film", *NONE, "--record", "--", "echo", "action")
    until(lambda: local("logs", "film").ok().out == "action\n")
    cast = local.home / "agents" / local.agent("film")["id"] / "record.cast"
    until(lambda: "action" in cast.read_text())


def test_an_agent_cannot_redirect_its_log(local: Cli, tmp_path: Path) -> None:
    """The log is not in the folder that a sandboxed agent can write to."""
    local.create("foo", *NONE, "--", "echo", "hello")
    folder = local.home / "agents" / local.agent("foo")["id"]
    assert log_of(local, "foo").parent not in (folder, *folder.parents[:1])
    assert not [
        path for path in folder.iterdir() if path.is_file() and b"hello\r" in path.read_bytes()
    ]


PIECES = st.lists(
    st.sampled_from(["a", "é", "\r", "\n", "\x1b[31m", "\x1b]0;t\x07", "\x1b]0;u\x1b\\", "\x1b(B"])
)


@given(PIECES, st.data())
def test_cleaning_in_pieces_equals_cleaning_the_whole(
    parts: list[str], data: st.DataObject
) -> None:
    whole = "".join(parts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    show = cleaned(False)
    edges = [0, *cuts, len(whole)]
    pieces = [show(whole[a:b], False) for a, b in pairwise(edges)]
    text = "".join(pieces) + show(b"", True)
    assert text == cleaned(False)(whole, True)
    assert "\x1b" not in text
