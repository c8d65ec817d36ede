"""Completion, asked directly and from inside real shells on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mngr.model.records import AgentRecord, agent_dir, encode
from tests.support.kite import environment, mngr
from tests.support.records import agent_record

AGENTS = ("alpha", "alphabet", "beta")


@pytest.fixture
def home(tmp_path: Path) -> str:
    return furnished(tmp_path)


def furnished(tmp_path: Path) -> str:
    """A home with agents, a template, and a `mngr` on its PATH."""
    world = tmp_path / "world"
    for number, name in enumerate(AGENTS):
        folder = Path(agent_dir(str(world), f"agent-{number:032x}"))
        folder.mkdir(parents=True)
        (folder / "agent.1.json").write_bytes(encode(record(f"agent-{number:032x}", name)))
    (world / "trash" / f"agent-{9:032x}").mkdir(parents=True)
    (world / "trash" / f"agent-{9:032x}" / "trash.json").write_text('{"name": "gone"}')
    (world / "tmr" / "nightly").mkdir(parents=True)
    (world / "tmr" / "nightly" / "journal.jsonl").write_text("")
    (world / "settings.toml").write_text("[create_templates.tall]\nheight = 90\n")
    program = tmp_path / "bin" / "mngr"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mngr "$@"\n')
    program.chmod(0o755)
    (tmp_path / "plans.txt").write_text("")
    return str(tmp_path)


def record(agent_id: str, name: str) -> AgentRecord:
    return agent_record(id=agent_id, name=name, argv=("sleep", "1"), work_dir="/")


def candidates(home: str, *words: str) -> list[str]:
    done = mngr(home, "__complete", "--", *words)
    assert done.returncode == 0, done.stderr
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cre", ["create"]),
        ("-q --format json cre", ["create"]),
        ("--for", ["--format"]),
        ("--format js", ["json", "jsonl"]),
        ("--format=js", ["--format=json", "--format=jsonl"]),
        ("-S trash", ["trash.keep="]),
        ("kite alph", ["alpha", "alphabet"]),
        ("k bet", ["beta"]),
        ("kite alpha bet", ["beta"]),
        ("kite --wind north bet", ["beta"]),
        ("kite --win", ["--wind"]),
        ("kite --wind n", ["north", "north-east"]),
        ("kite --wind=n", ["--wind=north", "--wind=north-east"]),
        ("kite --string bet", ["beta"]),
        ("kite --no-s", ["--no-string"]),
        ("kite -t ", ["tall"]),
        ("kite --template=t", ["--template=tall"]),
        ("kite --type com", ["command"]),
        ("kite --until W", ["WAITING"]),
        ("kite -qS trash", ["trash.keep="]),
        ("kite --format h", ["human"]),
        ("kite --height ", []),
        ("kite --fat", []),
        ("config s", ["set"]),
        ("config get trash", ["trash.keep"]),
        ("config --scope l", ["local"]),
        ("completion z", ["zsh"]),
        ("help comp", ["completion"]),
        ("help list ", []),
        ("list --fields name,host.na", ["name,host.name"]),
        ("list --sort=exit", ["--sort=exit_code"]),
        ("list --type com", ["command"]),
        ("create -t t", ["tall"]),
        ("restore g", ["gone"]),
        ("plugin disable tut", ["tutorial"]),
        ("tmr unp", ["unpause"]),
        ("tmr show n", ["nightly"]),
        ("tmr run n", []),
        ("stop --agent bet", ["beta"]),
    ],
)
def test_candidates_fit_where_the_cursor_is(home: str, line: str, expected: list[str]) -> None:
    assert candidates(home, *line.split(" ")) == expected


def test_every_command_is_a_candidate_with_its_help(home: str) -> None:
    out = mngr(home, "__complete", "--", "").stdout
    assert "list\tlist agents on all hosts\n" in out
    assert "kite\tfly a kite\n" in out


def test_descriptions_are_sentences_and_not_templates(home: str) -> None:
    for command in ("tmr", "create", "list", "tutorial"):
        out = mngr(home, "__complete", "--", command, "--").stdout
        assert "%(" not in out and not re.search(r"\('\w", out), out
    only = mngr(home, "__complete", "--", "tmr", "--only").stdout
    assert only.startswith("--only\ttests: all, ")


def test_file_names_are_left_to_the_shell(home: str) -> None:
    for words in (["kite", "--plan", "p"], ["kite", "a", "--", "p"]):
        done = mngr(home, "__complete", "--", *words)
        assert (done.stdout, done.returncode) == ("", 9)


def test_completion_survives_broken_settings(home: str) -> None:
    Path(home, "world", "settings.toml").write_text("= 3")
    assert candidates(home, "cre") == ["create"]
    assert candidates(home, "kite", "bet") == ["beta"]


def test_an_unknown_shell_is_refused(home: str) -> None:
    done = mngr(home, "completion", "bsh")
    assert done.stderr == "mngr: SHELL: unknown value 'bsh'; did you mean 'bash'?\n"
    assert done.returncode == 2


class Shell:
    """An interactive shell on its own terminal, which reports the line that it is editing."""

    def __init__(self, home: str, argv: list[str], setup: str) -> None:
        self.line = Path(home, "line")
        self.shown = ""
        self.ours, theirs = pty.openpty()
        env = environment(
            home, PATH=f"{home}/bin:{os.environ['PATH']}", TERM="xterm", LINE=str(self.line)
        )
        self.process = subprocess.Popen(
            argv,
            env=env,
            cwd=home,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        Path(home, "setup").write_text(setup)
        self.type("source ./setup; echo READ''Y\n")
        self.wait_for("READY")

    def type(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def read(self, seconds: float) -> None:
        if select.select([self.ours], [], [], seconds)[0]:
            self.shown += os.read(self.ours, 65536).decode(errors="replace")

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            self.read(0.1)

    def completed(self, typed: str) -> str:
        """The line after TAB; Ctrl-X D has the shell write it down, Ctrl-U clears it."""
        self.line.unlink(missing_ok=True)
        self.type(f"\x15{typed}\t\x18d")
        deadline = time.monotonic() + 30
        while not (self.line.exists() and self.line.read_text().endswith("\n")):
            assert time.monotonic() < deadline, self.shown
            self.read(0.02)
        return self.line.read_text().removesuffix("\n")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)


BASH = r"""
source <(mngr completion bash)
dump() { printf '%s\n' "$READLINE_LINE" >"$LINE"; }
bind -x '"\C-xd": dump'
bind 'set bell-style none'
"""

ZSH = r"""
autoload -U compinit; compinit -u -D
source <(mngr completion zsh)
setopt no_beep
dump() { print -r -- "$BUFFER" >$LINE; }
zle -N dump
bindkey -e
bindkey '^Xd' dump
"""

SETUP = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], BASH),
    "zsh": (["zsh", "-f", "-i"], ZSH),
}


@pytest.fixture(scope="module", params=list(SETUP))
def shell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shell]:
    argv, setup = SETUP[request.param]
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not installed")
    shell = Shell(furnished(tmp_path_factory.mktemp(argv[0])), argv, setup)
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("mngr cre", "mngr create "),
        ("mngr kite --wi", "mngr kite --wind "),
        ("mngr kite --wind sou", "mngr kite --wind south "),
        ("mngr kite --wind=so", "mngr kite --wind=south "),
        ("mngr kite alp", "mngr kite alpha"),
        ("mngr kite be", "mngr kite beta "),
        ("mngr kite -t t", "mngr kite -t tall "),
        ("mngr config get tra", "mngr config get trash.keep "),
        ("mngr list --fields name,host.na", "mngr list --fields name,host.name "),
        ("mngr tmr show nig", "mngr tmr show nightly "),
        ("mngr restore go", "mngr restore gone "),
        ("mngr -S tra", "mngr -S trash.keep="),
        ("mngr kite --plan pla", "mngr kite --plan plans.txt "),
        ("mngr kite beta -- pla", "mngr kite beta -- plans.txt "),
    ],
)
def test_tab_completes_in_a_real_shell(shell: Shell, typed: str, expected: str) -> None:
    assert shell.completed(typed) == expected


def test_tab_lists_what_is_possible_in_a_real_shell(shell: Shell) -> None:
    shell.completed("mngr comp")
    shell.shown = ""
    # The first TAB completes what is common, and bash lists only on the second one after that.
    shell.type("\x15mngr kite alph\t\t\t")
    shell.wait_for("alphabet")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("mngr cre", ["create\tcreate an agent with its own work directory, and attach to it"]),
        ("mngr kite --wi", ["--wind\tfrom where (north, north-east, south)"]),
        ("mngr kite --wind n", ["north", "north-east"]),
        ("mngr kite --wind=so", ["--wind=south"]),
        ("mngr kite alp", ["alpha", "alphabet"]),
        ("mngr kite beta ", ["alpha", "alphabet", "beta"]),
        ("mngr kite -t ", ["tall"]),
        ("mngr config get tra", ["trash.keep\ttime before a destroyed agent is deleted"]),
        ("mngr kite --plan pla", ["plans.txt"]),
        ("mngr completion ", ["bash", "fish", "zsh"]),
        ("mngr list --fields name,host.na", ["name,host.name"]),
        ("mngr tmr show n", ["nightly"]),
        ("mngr restore g", ["gone"]),
    ],
)
def test_fish_completes(home: str, typed: str, expected: list[str]) -> None:
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    done = subprocess.run(
        ["fish", "--no-config", "-c", 'mngr completion fish | source; complete -C "$TYPED"'],
        env=environment(home, PATH=f"{home}/bin:{os.environ['PATH']}", TYPED=typed),
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert sorted(done.stdout.splitlines()) == expected
