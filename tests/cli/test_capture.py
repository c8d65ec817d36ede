from __future__ import annotations

from tests.support.cli import Cli, has_looked, until


def test_the_screen_in_all_its_forms(mngr: Cli) -> None:
    script = "printf '\\033[31mred\\033[0m\\n'; seq 1 100; echo end; exec cat"
    flags = ["--tmux-height", "20", "-w", "side=echo from the side; exec cat"]
    mngr.create("foo", *flags, "--", "sh", "-c", script)
    until(lambda: "end" in mngr("capture", "foo").out)
    screen = mngr("capture", "foo").ok().out
    assert screen.endswith("100\nend\n")
    assert "red" not in screen
    full = mngr("capture", "foo", "--full").ok().out
    assert full == "red\n" + "".join(f"{n}\n" for n in range(1, 101)) + "end\n"
    assert "\x1b[31mred" in mngr("capture", "foo", "--full", "--ansi").ok().out
    until(lambda: "from the side" in mngr("capture", "foo", "--window", "side").out)
    row = mngr("capture", "foo", "--format", "json").ok().json()
    assert row == {
        "id": mngr.agent("foo")["id"],
        "name": "foo",
        "window": "agent",
        "screen": screen,
    }
    mngr("stop", "foo").ok()
    assert mngr("capture", "foo").ok().out.endswith("100\nend\n")
    assert mngr("capture", "foo", "--full").ok().out == full


def test_wrong_use_is_named(local: Cli) -> None:
    local.create("foo", "-w", "side=exec cat")
    local("capture").fails(2, "no agent given")
    local("capture", "fo").fails(4, "no agent 'fo'", "'foo'")
    local("capture", "foo", "--window", "sid").fails(4, "no window 'sid'", "'side'")
    local("capture", "foo", "bar").fails(2, "unexpected argument 'bar'")
    local("capture", "foo:x").fails(2, "names a path")


def test_the_last_lines_of_a_program_that_has_ended_are_there(local: Cli) -> None:
    """`exit` is written before tmux reads the last output, which waits for this test here."""
    ended = 's/"pid":[0-9]*/"code":0/; s/}/,"cause":""}/'
    write = f"cd \"$MNGR_AGENT_STATE_DIR\"; sed '{ended}' started > .e && mv .e exit"
    rest = "until [ -e go ]; do sleep 0.02; done; echo last"
    local.create("foo", "--", "sh", "-c", f"echo first; {write}; {rest}")
    until((local.state_dir("foo") / "exit").exists)
    capturing = local.start("capture", "foo")
    until(lambda: capturing.poll() is not None or has_looked(capturing, faults=1500))
    (local.state_dir("foo") / "go").touch()
    assert capturing.communicate(timeout=30)[0] == b"first\nlast\n"
