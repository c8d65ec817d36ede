"""Attaching, by way of a terminal that is not mngr's own."""

from __future__ import annotations

import shlex

from tests.support.cli import Cli, until
from tests.support.screen import Screen


def test_attach_type_and_detach(mngr: Cli) -> None:
    mngr.create("foo", "--", "sh", "-c", "echo I am foo; exec cat")
    with Screen(mngr) as screen:
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")
        screen.type("typed here")
        screen.shows("typed here\ntyped here")
        screen.keys("C-b", "d")
        screen.shows("[detached")
        screen.mngr("connect", "--read-only", "foo")
        screen.shows("[foo]")
        client = mngr.tmux("list-clients", "-F", "#{client_readonly}")
        assert client == "1\n"
        screen.keys("C-b", "d")
        until(lambda: mngr.tmux("list-clients") == "")
    assert mngr.state("foo") == "RUNNING"


def test_what_does_not_run_is_started_unless_told_otherwise(local: Cli) -> None:
    local.create("foo", "--", "sh", "-c", "echo I am foo; exec cat")
    local("stop", "foo").ok()
    with Screen(local) as screen:
        screen.mngr("connect", "foo", "--no-start")
        screen.shows("foo is STOPPED: there is no terminal")
        assert local.state("foo") == "STOPPED"
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")
    assert local.state("foo") == "RUNNING"


def test_without_a_name_one_chooses_from_a_list(local: Cli) -> None:
    with Screen(local) as screen:
        screen.mngr("connect")
        screen.shows("there are no agents")
        local.create("foo", "--", "sh", "-c", "echo I am foo; exec cat")
        local.create("bar", "--", "sh", "-c", "echo I am bar; exec cat")
        screen.type("clear")
        for answer in ("2", "bar"):
            screen.mngr("connect")
            screen.shows("1  foo  RUNNING", "2  bar  RUNNING", "Which one?")
            screen.type(answer)
            screen.shows("I am bar", "[bar]")
            screen.keys("C-b", "d")
            screen.shows("[detached")
            screen.type("clear")
        local.create("bare", "--", "cat")
        screen.mngr("connect")
        mistakes = {
            "9": "there is no number 9",
            "baz": "did you mean 'bar'?",
            "b": "'b' matches bar, bare; type more of the name",
        }
        for asked, (answer, told) in enumerate(mistakes.items(), start=1):
            until(lambda asked=asked: screen.text().count("Which one?") == asked)  # type: ignore[misc]
            screen.type(answer)
            screen.shows(told)
        screen.type("f")
        screen.shows("I am foo", "[foo]")
        screen.keys("C-b", "d")
        screen.shows("[detached")
        screen.type("clear")
        screen.mngr("connect")
        screen.shows("Which one?")
        screen.type("")
        screen.shows("no agent was chosen")


def test_inside_an_agent_the_terminal_switches_to_the_other(mngr: Cli) -> None:
    shell = ["env", "PS1=foo> ", *(f"{k}={v}" for k, v in mngr.env.items() if "MNGR_" in k), "sh"]
    shell.insert(1, f"PYTHONPATH={mngr.env['PYTHONPATH']}")
    mngr.create("foo", "--", *shell)
    mngr.create("bar", "--", "sh", "-c", "echo I am bar; exec cat")
    with Screen(mngr) as screen:
        screen.mngr("connect", "foo")
        screen.shows("foo>", "[foo]")
        screen.type(shlex.join(mngr.argv("connect", "bar")))
        screen.shows("I am bar", "[bar]")
        sessions = mngr.tmux("list-clients", "-F", "#{client_session}").split()
        assert sessions == [mngr.agent("bar")["id"]]


def test_a_connect_command_needs_no_terminal(mngr: Cli) -> None:
    mngr.create("foo")
    command = 'printf "%s\\n" "$MNGR_AGENT_NAME" "$MNGR_CONNECT_ARGV"'
    done = mngr("connect", "foo", "--read-only", "--connect-command", command).ok()
    name, argv = done.out.splitlines()
    assert name == "foo"
    assert f"attach-session -r -t '={mngr.agent('foo')['id']}'" in argv
    mngr("connect", "foo", "--connect-command", "exit 3").fails(1, "exit code 3")


def test_a_connect_command_knows_the_session_and_runs_for_a_living_agent_only(mngr: Cli) -> None:
    mngr.create("foo")
    command = 'tmux -S "$MNGR_TMUX_SOCKET" has-session -t "=$MNGR_SESSION_NAME" && echo there'
    assert mngr("connect", "foo", "--connect-command", command).ok().out == "there\n"
    mngr("stop", "foo").ok()
    stopped = mngr("connect", "foo", "--no-start", "--connect-command", "echo ran")
    stopped.fails(1, "foo is STOPPED", "mngr start foo")
    assert stopped.out == ""


def test_a_configured_connect_command_may_call_connect(local: Cli) -> None:
    local.create("foo", "--", "sh", "-c", "echo I am foo; exec cat")
    calls = local.base / "calls"
    connect = shlex.join(local.argv("connect"))
    command = f'echo "$MNGR_AGENT_NAME" >> {calls}; {connect} "$MNGR_AGENT_NAME"'
    local("config", "set", "--scope", "user", "commands.connect.connect_command", command).ok()
    with Screen(local) as screen:
        screen.mngr("connect", "foo")
        screen.shows("I am foo", "[foo]")
    assert calls.read_text() == "foo\n"


def test_the_hint_knows_of_a_tmux_around_ours(local: Cli) -> None:
    local.create("foo", "--", "cat")
    with Screen(local) as screen:
        screen.mngr("connect", "foo")
        screen.shows("detach: C-b d (C-b C-b d if your tmux uses C-b)")
    status = ("display-message", "-p", "#{E:status-right}")
    assert local.tmux(*status) == "detach: C-b d\n"
    local.tmux("set-option", "-g", "prefix", "C-a")
    assert local.tmux(*status) == "detach: C-a d\n"


def test_an_attached_terminal_shows_that_the_program_has_ended(local: Cli) -> None:
    local.create("foo", "--", "sh", "-c", "until [ -e go ]; do sleep 0.02; done")
    with Screen(local) as screen:
        screen.mngr("connect", "foo")
        screen.shows("detach: C-b d")
        (local.work_dir("foo") / "go").touch()
        screen.shows("the program has ended; detach: C-b d")


def test_colours_and_mouse_work_and_the_users_tmux_settings_win(local: Cli) -> None:
    local.controller_home.mkdir()
    (local.controller_home / "tmux.user.conf").write_text("set -g prefix C-a\n")
    red = r"printf '\033[38;2;250;1;2m%s\033[0m\n' \"$COLORTERM\""
    local.create("foo", "--", "sh", "-c", f"{red}; exec cat")
    assert local.tmux("show-options", "-gv", "mouse") == "on\n"
    assert local.tmux("show-options", "-gv", "prefix") == "C-a\n"
    with Screen(local, {"COLORTERM": "truecolor"}) as screen:
        screen.mngr("connect", "foo")
        screen.shows("truecolor", "detach: C-a d")
        assert "38;2;250;1;2m" in screen.tmux("capture-pane", "-p", "-e")


def test_wrong_use_is_named(local: Cli) -> None:
    local.create("foo")
    local("connect", "foo").fails(2, "requires a terminal", "mngr capture")
    local("connect", "--connect-command", "true").fails(2, "no agent given")
    local("connect", "fo", "--connect-command", "true").fails(4, "'fo'", "'foo'")
    local("connect", "foo", "bar").fails(2, "unexpected argument 'bar'")
    with Screen(local) as screen:
        screen.mngr("connect", "fop")
        screen.shows("no agent 'fop'", "did you mean 'foo'?")


def test_a_tiny_client_elsewhere_does_not_shrink_a_new_agent(local: Cli) -> None:
    local.create("foo", "--", "cat")
    with Screen(local) as screen:
        screen.tmux("resize-window", "-x", "20", "-y", "6")
        screen.mngr("connect", "foo")
        until(lambda: local.tmux("list-clients", "-F", "#{client_width}") == "20\n")
        local.create("bar", "--", "sh", "-c", "stty size > size; exec cat")
        size = local.work_dir("bar") / "size"
        until(lambda: size.exists() and size.read_text() != "")
        assert size.read_text() == "50 200\n"
        pane = f"={local.agent('bar')['id']}:agent"
        assert local.tmux("display", "-p", "-t", pane, "#{window_width}") == "200\n"


def test_a_window_fits_the_terminal_that_looks_at_it(local: Cli) -> None:
    local.create("foo", "-w", "side=cat", "--", "cat")
    with Screen(local) as screen:
        screen.tmux("resize-window", "-x", "90", "-y", "30")
        screen.mngr("connect", "foo")
        widths = ("list-windows", "-t", f"={local.agent('foo')['id']}", "-F", "#{window_width}")
        until(lambda: local.tmux(*widths) == "90\n200\n", what="the window looked at fits")
        screen.keys("C-b", "n")
        until(lambda: local.tmux(*widths) == "90\n90\n", what="the other fits when looked at")


RUNS = ("sh", "-c", "echo run >> runs; echo last words; exit 3")


def runs(cli: Cli, name: str) -> int:
    return len((cli.work_dir(name) / "runs").read_text().split())


def test_what_has_finished_is_shown_and_not_run_again(mngr: Cli) -> None:
    mngr.create("foo", "--", *RUNS)
    mngr.create("good", "--", "true")
    mngr("wait", "foo", "good", "DONE", "FAILED").ok()
    before = mngr("event", "foo").ok().out
    for words in ([], ["--read-only"], ["--no-start"], ["--headless"]):
        shown = mngr("connect", "foo", *words).ok()
        assert shown.out.startswith("last words\n")
        assert shown.err == (
            "foo is FAILED (exit code 3); run it again with `mngr connect foo --start`\n"
        )
    assert mngr("connect", "good").ok().err.startswith("good is DONE (exit code 0); run it")
    refused = mngr("connect", "foo", "--connect-command", "touch connected")
    refused.fails(1, "foo is FAILED", "mngr connect foo --start")
    assert refused.out.startswith("last words\n")
    assert (runs(mngr, "foo"), mngr("event", "foo").ok().out) == (1, before)
    assert not (mngr.repo / "connected").exists()
    mngr.tmux("kill-server")  # from then on the saved screen, where there is one
    assert "foo is FAILED (exit code 3)" in mngr("connect", "foo").ok().err


def test_on_a_terminal_a_finished_agent_runs_again_after_a_yes(local: Cli) -> None:
    local.create("foo", "--", "sh", "-c", "echo run >> runs; [ ! -e go ] || exec cat")
    local("wait", "foo").ok()
    (local.work_dir("foo") / "go").touch()
    with Screen(local) as screen:
        for answer in ("", "n"):
            screen.mngr("connect", "foo")
            screen.shows("foo is DONE (exit code 0)", "Start it again? [y/N]")
            screen.type(answer)
            screen.type("clear; echo pr''ompt")
            screen.shows("prompt\n")
            screen.type("clear")
        screen.mngr("connect")
        screen.shows("Which one?")
        screen.type("1")
        screen.shows("foo is DONE (exit code 0)", "Start it again? [y/N]")
        assert runs(local, "foo") == 1
        screen.type("y")
        screen.shows("[foo]")
    assert (local.state("foo"), runs(local, "foo")) == ("RUNNING", 2)


def test_start_runs_a_finished_agent_again(local: Cli) -> None:
    local.create("foo", "--", *RUNS[:2], RUNS[2].replace("exit 3", "[ ! -e go ] || exec cat"))
    local("wait", "foo").ok()
    (local.work_dir("foo") / "go").touch()
    local("connect", "foo", "--start").fails(2, "requires a terminal")
    assert runs(local, "foo") == 1
    local("connect", "foo", "--start", "--connect-command", "true").ok()
    assert (local.state("foo"), runs(local, "foo")) == ("RUNNING", 2)
