from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mngr.cli.app.main import make_parser
from mngr.plugins.registry import own_registry
from tests.support.kite import environment, mngr


@pytest.fixture
def home(tmp_path: Path) -> str:
    return str(tmp_path)


def settings(home: str, text: str) -> str:
    path = Path(home, "world", "settings.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return str(path)


def flown(home: str, *argv: str, **env: str) -> dict[str, object]:
    """The arguments that the command was run with."""
    done = mngr(home, *argv, **env)
    assert done.stderr == ""
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return told


def test_the_version_is_told_with_and_without_other_options(home: str) -> None:
    for argv in (["--version"], ["-q", "--version"]):
        done = mngr(home, *argv)
        assert done.stdout.startswith("mngr 0.")
        assert done.returncode == 0


@pytest.mark.parametrize("argv", [["help"], ["--help"], ["-q"], ["-q", "--help"]])
def test_without_a_command_the_commands_are_listed(home: str, argv: list[str]) -> None:
    done = mngr(home, *argv)
    assert done.returncode == 0
    assert done.stderr == ""
    for line in ("Agents", "  create, c ", "Work", "Other", "Plugins", "  kite, k "):
        assert line in done.stdout


@pytest.mark.parametrize("argv", [[], ["-h"]])
def test_mngr_itself_has_a_first_screen(home: str, argv: list[str]) -> None:
    lines = screen(home, *argv)
    assert lines[0] == "usage: mngr [OPTIONS] COMMAND [ARGUMENTS]"
    assert lines[-1] == "mngr help for all commands"
    assert any(line.startswith("  create ") for line in lines)


@pytest.mark.parametrize("name", own_registry().names("command"))
def test_the_short_help_of_every_command_and_verb_is_one_screen(home: str, name: str) -> None:
    for verb in ("", *make_parser(own_registry(), name).verbs):
        lines = screen(home, name, *([verb] if verb else []), "-h")
        assert lines[0].startswith(f"usage: mngr {name} {verb}".rstrip())
        assert lines[-1] == f"mngr help {name} for all options"
        if not verb:
            assert f"mngr {name}" in "\n".join(lines[lines.index("Examples:") :])


def screen(home: str, *argv: str) -> list[str]:
    """What a `-h` prints, if it fits on a terminal of 24 lines and 80 columns."""
    done = mngr(home, *argv)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    return lines


def test_the_short_help_of_a_verb_shows_its_options(home: str) -> None:
    lines = screen(home, "host", "trust", "-h")
    assert any(line.startswith("  --fingerprint SHA256:HASH ") for line in lines)
    assert not any(line.startswith("  --build-arg") for line in lines)


def test_help_in_other_formats(home: str) -> None:
    assert "\nlist\n" in mngr(home, "help", "--format", "{name}").stdout
    commands = json.loads(mngr(home, "--format", "json", "help").stdout)
    assert {"name": "list", "aliases": ["ls", "ps"]}.items() <= commands["commands"][1].items()


@pytest.mark.parametrize(
    "argv", [["help", "kite"], ["kite", "--help"], ["help", "k"], ["man", "k"]]
)
def test_every_way_to_a_manual_shows_the_same(home: str, argv: list[str]) -> None:
    done = mngr(home, *argv)
    assert done.returncode == 0
    assert done.stdout == mngr(home, "--help", "kite").stdout
    assert "mngr-kite - fly a kite" in done.stdout


def test_the_manual_of_mngr_itself_has_a_name_too(home: str) -> None:
    shown = mngr(home, "man").stdout
    assert "\nEXIT" in shown
    assert mngr(home, "man", "mngr").stdout == mngr(home, "help", "mngr").stdout == shown


def test_help_keeps_to_the_terminals_width(home: str) -> None:
    wide = max(map(len, mngr(home, "kite", "--help", COLUMNS="100").stdout.splitlines()))
    narrow = max(map(len, mngr(home, "kite", "--help", COLUMNS="60").stdout.splitlines()))
    assert narrow <= 60 < wide <= 100


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["creat"], "mngr: unknown command 'creat'; did you mean 'create'?\n"),
        (["zzzz"], "mngr: unknown command 'zzzz'; see `mngr help`\n"),
        (["--formt", "x", "list"], "mngr: unknown option '--formt'; did you mean '--format'?\n"),
        (["kite", "a", "--wnd", "x"], "mngr: unknown option '--wnd'; did you mean '--wind'?\n"),
        (
            ["kite", "a", "--wind", "sotuh"],
            "mngr: --wind: unknown value 'sotuh'; did you mean 'south'?\n",
        ),
        (["kite"], "mngr: missing target; see `mngr kite --help`\n"),
        (["help", "creat"], "mngr: unknown command 'creat'; did you mean 'create'?\n"),
    ],
)
def test_a_wrong_line_is_one_line_on_stderr_and_exit_2(
    home: str, argv: list[str], line: str
) -> None:
    done = mngr(home, *argv)
    assert (done.stdout, done.stderr, done.returncode) == ("", line, 2)


def test_common_options_stand_before_or_after_the_command(home: str) -> None:
    before = flown(home, "-S", "trash.keep=1d", "--format", "json", "-q", "kite", "a")
    after = flown(home, "kite", "a", "-S", "trash.keep=1d", "--format", "json", "-q")
    assert before == after
    assert before["quiet"] is True
    assert before["command"] == "kite"


def test_what_follows_two_dashes_is_passed_on(home: str) -> None:
    told = flown(home, "k", "a", "--format", "json", "--", "--wind", "-h", "--version")
    assert told["rest"] == ["--wind", "-h", "--version"]


def test_layers_of_defaults_lie_under_the_flags(home: str) -> None:
    settings(home, '[commands.kite]\nheight = 1\nwind = "north"\nbow = ["a"]\nlabel = {x = "1"}\n')
    told = flown(home, "kite", "t", "--bow", "b", "--label", "y=2")
    assert told["height"] == 1
    assert told["bow"] == ["a", "b"]
    assert told["label"] == {"x": "1", "y": "2"}
    assert flown(home, "kite", "t", MNGR__COMMANDS__KITE__HEIGHT="2")["height"] == 2
    assert flown(home, "-S", "commands.kite.height=3", "kite", "t")["height"] == 3
    told = flown(home, "-S", "commands.kite.height=3", "kite", "t", "--height", "4")
    assert told["height"] == 4


def test_a_commands_own_defaults_lie_between_settings_and_flags(home: str) -> None:
    settings(
        home, "[commands.kite]\nheight = 1\n[create_templates.high]\nheight = 9\nbow = ['t']\n"
    )
    assert flown(home, "kite", "a")["height"] == 1
    told = flown(home, "kite", "a", "-t", "high", "--bow", "f")
    assert told["height"] == 9
    assert told["bow"] == ["t", "f"]
    assert flown(home, "kite", "a", "-t", "high", "--height", "5")["height"] == 5


def test_a_wrong_default_in_settings_is_named_with_its_file(home: str) -> None:
    path = settings(home, "[commands.kite]\nheigth = 1\n")
    done = mngr(home, "kite", "a")
    assert done.stderr == (
        f"mngr: {path}: commands.kite: 'mngr kite' has no option 'heigth'; did you mean 'height'?\n"
    )
    assert done.returncode == 0, "an unknown option is left out"
    settings(home, '[commands.kite]\nheight = "tall"\n')
    assert (
        f"{path}: commands.kite: height: invalid int value: 'tall'"
        in mngr(home, "kite", "a").stderr
    )


def test_broken_settings_stop_commands_but_not_those_that_help_to_mend_them(home: str) -> None:
    path = settings(home, "= 3")
    done = mngr(home, "kite", "a")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert path in done.stderr
    for argv in (["help"], ["kite", "--help"], ["config", "path"], ["completion", "bash"]):
        assert mngr(home, *argv).returncode == 0
    assert "mngr 0." in mngr(home, "--version").stdout


def test_an_error_is_one_line_with_its_exit_code(home: str) -> None:
    done = mngr(home, "kite", "a", "--fate", "fail")
    assert done.stderr == "mngr: the string broke; tie a knot\n"
    assert done.returncode == 3


def test_an_interrupt_is_quiet(home: str) -> None:
    done = mngr(home, "kite", "a", "--fate", "interrupt")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 130)


def test_an_error_of_the_system_names_the_file(home: str) -> None:
    done = mngr(home, "kite", "a", "--fate", "missing")
    assert done.stderr == "mngr: /nowhere/kite: No such file or directory\n"
    assert done.returncode == 1


def test_a_crash_is_one_line_and_a_traceback_on_request(home: str) -> None:
    done = mngr(home, "kite", "a", "--fate", "crash")
    assert done.returncode == 1
    assert done.stderr == (
        "mngr: internal error: ValueError: no wind; run again with -v for the traceback\n"
    )
    traced = mngr(home, "kite", "a", "--fate", "crash", "-v")
    assert "Traceback" in traced.stderr
    assert traced.stderr.endswith(done.stderr)


def test_a_broken_plugin_is_a_warning_and_not_in_the_way(home: str) -> None:
    done = mngr(home, "help", MNGR__PLUGINS__MODULES='["no_such_plugin"]')
    assert done.returncode == 0
    line, end, rest = done.stderr.partition("; ")
    assert line == "mngr: plugin 'no_such_plugin': there is no module 'no_such_plugin'"
    assert (end, rest) == ("; ", "to disable it: `mngr plugin disable no_such_plugin`\n")


def test_a_failing_event_handler_is_a_warning(home: str) -> None:
    done = mngr(home, "kite", "a", "--fate", "emit")
    assert done.returncode == 0
    assert done.stderr == (
        "mngr: handler 'support.kite:tear' of agent_created: RuntimeError: torn by agent-1\n"
    )


def start(home: str, *argv: str, **streams: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mngr", *argv]
    return subprocess.Popen(command, env=environment(home), cwd=home, **streams)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("format", ["human", "json", "jsonl", "{n}"])
def test_a_reader_that_leaves_early_is_no_error(home: str, format: str) -> None:
    process = start(
        home,
        *("kite", "a", "--fate", "flood", "--format", format),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    process.stdout.read(1)
    process.stdout.close()
    _, error = process.communicate(timeout=60)
    assert error == b""
    assert process.returncode == 141


def test_a_reader_that_has_left_before_is_no_error(home: str) -> None:
    theirs, ours = os.pipe()
    os.close(theirs)
    # Little output is still in a buffer at exit, where Python would complain once more.
    process = start(home, "help", stdout=ours, stderr=subprocess.PIPE)
    os.close(ours)
    _, error = process.communicate(timeout=60)
    assert error == b""
    assert process.returncode == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_one_line(home: str) -> None:
    for fate in ("fly", "flood"):
        with open("/dev/full", "w") as full:
            process = start(
                home, "kite", "a", "--fate", fate, stdout=full.fileno(), stderr=subprocess.PIPE
            )
            _, error = process.communicate(timeout=60)
        assert process.returncode == 1
        assert error == b"mngr: standard output: No space left on device\n"


def test_closed_streams_are_no_error(home: str) -> None:
    line = f"{sys.executable} -m mngr kite a"
    for redirection in (">&-", "2>&-", ">&- 2>&-", "<&-"):
        done = subprocess.run(
            ["sh", "-c", f"{line} {redirection}"],
            env=environment(home),
            cwd=home,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0
        assert done.stderr == ""


def test_text_that_the_terminal_cannot_show_is_escaped(home: str) -> None:
    done = mngr(home, "kite", "ü", "--format", "{target}", PYTHONIOENCODING="ascii")
    assert done.stdout == "\\xfc\n"


def test_a_directory_that_is_gone_is_no_reason_to_fail(home: str) -> None:
    script = f"mkdir gone && cd gone && rmdir ../gone && exec {sys.executable} -m mngr kite a"
    done = subprocess.run(
        ["sh", "-c", script], env=environment(home), cwd=home, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.returncode == 0


def test_a_question_that_nobody_can_answer_is_refused(home: str) -> None:
    done = mngr(home, "kite", "a", "--fate", "ask", stdin="y\n")
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "about to fall",
        "mngr: asking requires a terminal: Let it fall? Use --force to do it anyway",
    ]
    assert done.returncode == 1


def on_terminal(home: str, typed: bytes, *argv: str, **env: str) -> tuple[str, int]:
    """What the terminal shows, and the exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mngr", *argv],
        env=environment(home, **env),
        cwd=home,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed)
    shown, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return shown.decode().replace("\r\n", "\n"), process.wait(timeout=60)


def test_a_question_on_a_terminal_is_asked(home: str) -> None:
    shown, code = on_terminal(home, b"y\n", "kite", "a", "--fate", "ask")
    assert "Let it fall? [y/N] " in shown
    assert "it fell" in shown
    assert code == 0
    shown, code = on_terminal(home, b"\n", "kite", "a", "--fate", "ask")
    assert "it fell" not in shown
    assert code == 1


def test_headless_asks_nothing_even_on_a_terminal(home: str) -> None:
    shown, code = on_terminal(home, b"y\n", "kite", "a", "--fate", "ask", "--headless")
    assert "asking requires a terminal" in shown
    assert code == 1


def test_colour_is_for_terminals_only(home: str) -> None:
    shown, _ = on_terminal(home, b"", "help")
    assert "\x1b[1mAgents\x1b[0m" in shown
    assert "\x1b" not in mngr(home, "help").stdout


@pytest.mark.parametrize("argv", [["man", "kite"], ["help", "kite"], ["kite", "--help"]])
def test_a_manual_on_a_terminal_goes_through_the_pager(home: str, argv: list[str]) -> None:
    Path(home, "pager").write_text('#!/bin/sh\necho "PAGED BY $1: $(head -2)"\n')
    Path(home, "pager").chmod(0o755)
    env = {"PAGER": f"{home}/pager PAGER", "MNGR_PAGER": f"{home}/pager MNGR"}
    shown, code = on_terminal(home, b"", *argv, **env)
    assert (shown.split("\n")[0], code) == ("PAGED BY MNGR: \x1b[1mNAME\x1b[0m", 0)
    shown, _ = on_terminal(home, b"", *argv, PAGER=env["PAGER"])
    assert shown.startswith("PAGED BY PAGER")
    assert mngr(home, *argv, **env).stdout.startswith("NAME\n")


def test_without_its_pager_a_manual_is_printed(home: str) -> None:
    shown, code = on_terminal(home, b"", "man", "kite", MNGR_PAGER="no-such-pager")
    assert "mngr-kite - fly a kite" in shown
    assert code == 0
