"""A message arrives whole, once, byte for byte, or it is refused before anything is typed."""

from __future__ import annotations

import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.cli import Cli, until
from tests.support.screen import Screen

READER = ["sh", "-c", "stty -echo; echo ready; exec cat > out"]

HARMLESS = """\
-n leading dash
--message=x
#{pane_id} #[fg=red] %1 %% ~ $(id > pwned) `id > pwned` ; \\; \\ \\n "quoted" 'single' !! * ? [x]
tab\there  two spaces\x20
ünïcödé 漢字 🪁 e\u0301
Enter C-c M-x Escape

last line"""


def reader(cli: Cli, name: str = "foo", *flags: str) -> Path:
    """An agent that writes all it reads to a file; returned once it reads."""
    cli.create(name, *flags, "--", *READER)
    until(lambda: "ready" in cli("capture", name).out)
    return cli.work_dir(name) / "out"


def arrived(path: Path, text: str) -> None:
    expected = f"{text}\n".encode()
    until(lambda: path.stat().st_size >= len(expected), what=f"{len(expected)} bytes in {path}")
    assert path.read_bytes() == expected


def test_any_text_arrives_byte_for_byte(mngr: Cli) -> None:
    out = reader(mngr)
    sent = mngr("message", "foo", "-m", HARMLESS).ok()
    assert sent.out.startswith("foo: delivered" if mngr.provider == "local" else "foo: typed (")
    arrived(out, HARMLESS)
    mngr("message", "foo", "--message=-x").ok()
    mngr("message", "foo", input="from\r\nstdin\r\n").ok()
    file = mngr.base / "text"
    file.write_text("from a file")
    mngr("message", "foo", "--message-file", str(file)).ok()
    mngr("message", "foo", "--message-file", "-", input="-").ok()
    arrived(out, f"{HARMLESS}\n-x\nfrom\nstdin\nfrom a file\n-")
    assert not (out.parent / "pwned").exists()
    row = mngr("message", "foo", "-m", "x", "--format", "json").ok().json()
    assert [each.keys() for each in row["results"]] == [{"id", "name", "outcome", "detail"}]


def test_a_hundred_kilobytes_of_short_lines_arrive(local: Cli) -> None:
    out = reader(local)
    text = "\n".join(f"{n:06} {'x' * 93}" for n in range(1000))
    local("message", "foo", input=text).ok()
    arrived(out, text)


def test_the_longest_line_of_a_terminal_arrives_and_a_longer_one_is_not_begun(mngr: Cli) -> None:
    out = reader(mngr)
    refused = mngr("message", "foo", input="short\n" + "y" * 4096)
    refused.fails(1, "at most 4095 bytes", "4096", "nothing was sent")
    mngr("message", "foo", input="x" * 4095).ok()
    arrived(out, "x" * 4095)
    wide = mngr("message", "foo", input="ü" * 2048)
    wide.fails(1, "at most 4095 bytes")


def test_a_program_in_raw_mode_gets_lines_of_any_length(local: Cli) -> None:
    script = (
        "import os, sys, tty\n"
        "tty.setraw(0); print('ready', flush=True); got = b''\n"
        "while not got.endswith(b'\\r'): got += os.read(0, 65536)\n"
        "open('.out', 'wb').write(got); os.rename('.out', 'out')\n"
    )
    local.create("foo", "--", sys.executable, "-c", script)
    until(lambda: "ready" in local("capture", "foo").out)
    local("message", "foo", input="x" * 50_000 + "end").ok()
    out = local.work_dir("foo") / "out"
    until(out.exists)
    assert out.read_bytes() == b"x" * 50_000 + b"end\r"


def test_wrong_messages_and_targets_are_refused(local: Cli) -> None:
    out = reader(local)
    for bad in ("\x03", "\x1b[201~", "\rb", "\x7f"):
        local("message", "foo", input=bad).fails(2, f"control character \\x{ord(bad[0]):02x}")
    local("message", "foo", input=b"\xff").fails(2, "U+DCFF")
    local("message", "foo", "-m", "").fails(2, "the message is empty")
    local("message", "foo", input="\n \n").fails(2, "the message is empty")
    local("message", "foo", input="x" * 1_100_000).fails(2, "larger than")
    local("message", "foo", "--message-file", "/nowhere").fails(2, "/nowhere")
    local("message", "foo", "-m", "x", "--message-file", "y").fails(2, "cannot be used together")
    local("message", "fop", "-m", "x").fails(4, "no agent 'fop'", "'foo'")
    local("message", "-m", "x").fails(2, "no agent given")
    local("message", "foo", "-m", "x", "--on-error", "abor").fails(2, "'abort'")
    local("message", "-", "--message-file", "-", input="foo\n").fails(2, "both")
    local("message", "-", input="foo\n").fails(2, "no message given")
    assert "would be sent" in local("message", "foo", "-m", "abc", "--dry-run").ok().out
    assert out.read_bytes() == b""
    mixed = local("message", "foo", "fop", "-m", "hello")
    assert mixed.code == 3
    arrived(out, "hello")
    local("message", "-", "-m", "two", input="foo\n").ok()
    arrived(out, "hello\ntwo")


def test_copy_mode_does_not_swallow_a_message(local: Cli) -> None:
    out = reader(local)
    local.tmux("copy-mode", "-t", f"={local.agent('foo')['id']}:")
    local("message", "foo", "-m", "q j k hello").ok()
    arrived(out, "q j k hello")


@pytest.mark.dear
def test_a_dead_agent_refuses_and_twenty_live_ones_are_unharmed(mngr: Cli) -> None:
    lines = "".join(f'{{"name": "a{n}", "args": ["cat"]}}\n' for n in range(20))
    mngr("create", "--batch", "-", input=lines).ok()
    mngr.create("dead", "--", "true")
    until(lambda: mngr.state("dead") == "DONE")
    mngr("message", "dead", "-m", "x").fails(1, "dead is DONE", "nothing was sent", "mngr start")
    everyone = [f"a{n}" for n in range(20)]
    mixed = mngr("message", *everyone, "dead", "-m", "hello", "--format", "json")
    assert mixed.code == 3
    outcomes = {row["name"]: row["outcome"] for row in mixed.json()["results"]}
    assert outcomes.pop("dead") == "refused"
    assert set(outcomes.values()) <= {"delivered", "queued", "typed"}
    agents = {a["name"]: a["state"] for a in mngr("list", "--format", "json").json()["agents"]}
    assert [agents[name] for name in everyone] == ["RUNNING"] * 20
    aborted = mngr("message", "dead", "a1", "-m", "not sent", "--on-error", "abort")
    aborted.fails(1, "dead is DONE")
    assert "a1" not in aborted.err
    assert "not sent" not in mngr("capture", "a1").out


def test_messages_at_the_same_time_arrive_whole_and_once(local: Cli) -> None:
    out = reader(local)
    texts = [f"{n}a {'x' * 500}\n{n}b" for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        for done in pool.map(lambda text: local("message", "foo", "-m", text), texts):
            done.ok()
    until(lambda: out.read_text().count("\n") == 24)
    whole = out.read_text()
    assert all(whole.count(f"{text}\n") == 1 for text in texts)


def test_a_busy_program_gets_it_later_and_a_stopped_one_after_a_start(local: Cli) -> None:
    local.create("busy", "--", "sleep", "1000")
    assert "busy: queued" in local("message", "busy", "-m", "x").ok().out
    late = local("message", "busy", "-m", "x", "--timeout", "100ms")
    assert (late.code, late.out.startswith("busy: queued")) == (124, True)
    out = reader(local)
    local("stop", "foo").ok()
    local("message", "foo", "-m", "x").fails(1, "foo is STOPPED")
    local("message", "foo", "--start", "-m", "hello").ok()
    until(lambda: "hello" in out.read_text() or "hello" in local("capture", "foo").out)


def test_on_a_terminal_the_editor_is_asked(local: Cli) -> None:
    out = reader(local)
    editor = local.base / "editor"
    editor.write_text('#!/bin/sh\nprintf "from the\\neditor\\n" > "$1"\n')
    editor.chmod(0o755)
    with Screen(local, {"VISUAL": str(editor)}) as screen:
        screen.mngr("message", "foo")
        screen.shows("foo: delivered")
    arrived(out, "from the\neditor")


def test_words_after_the_name_are_explained_instead_of_sent(local: Cli) -> None:
    local.create("fix", "--", "cat")
    local.create("docs", "--", "cat")
    for words in (["hello"], ["all is", "done"], ["docs", "go", "on"]):
        refused = local("message", "fix", *words)
        known, text = (["fix", "docs"], words[1:]) if words[0] == "docs" else (["fix"], words)
        right = shlex.join(["mngr", "message", *known, "-m", " ".join(text)])
        refused.fails(2, f"there is no agent {text[0]!r}", right)
    with Screen(local, {"EDITOR": "touch edited;"}) as screen:
        screen.mngr("message", "fix", "hello")
        screen.shows("mngr message fix -m hello")
    assert not (local.repo / "edited").exists()
    some = local("message", "fix", "nosuch", input="piped\n")
    assert some.code == 3 and "nosuch" in some.err
