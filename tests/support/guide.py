"""Run the examples of a document in order, like a reader who starts with nothing.

    ```console   commands after `$ `, each followed by what it prints; `...` stands for anything
    ```sh        a script; it has to succeed
    ```python    the same

Every other block is marked as what it shows: `text`, `toml`, `json`. What a reader has already, and
need not be told, is made by a script in a comment:

    <!-- sh
    mngr create foo --no-connect -- sleep 1000
    -->
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mngr.hosts import tmux
from tests.support.cli import ROOT, Cli
from tests.support.dists import install

RUN = ("console", "sh", "python")
SHOWN = ("text", "toml", "json")

MAKEFILE = """\
all:
	@echo building; head -n 1
test lint unit:
	@echo $@ passed
serve:
	@sleep 1000
"""


@dataclass
class Block:
    """One fenced block."""

    file: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"


def blocks(file: Path) -> list[Block]:
    """Return all blocks in order; a fence that is not closed continues to the end."""
    found: list[Block] = []
    fence = ""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+|<!-- (?=sh$))(.*)", line)
        if fence:
            if line.strip() == fence:
                fence = ""
            else:
                found[-1].text += f"{line}\n"
        elif mark:
            fence = "-->" if mark[1].startswith("<") else mark[1]
            found.append(Block(file, number, mark[2].strip(), ""))
    return found


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with its expected lines."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
        else:
            assert found, f"a console block begins with a command, not {line!r}"
            found[-1][1].append(line)
    return found


def matches(expected: list[str], printed: list[str]) -> bool:
    """Return whether the output matches; runs of blanks are equal, because paths change columns."""
    lines = [" ".join(line.split()) for line in expected]
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in lines
    )
    shown = "".join(" ".join(line.split()) + "\n" for line in printed)
    return re.fullmatch(pattern, shown) is not None


class Reader(Cli):
    """A reader with a project and the example plugin, without settings; the home is /home/you."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.user_home = self.base / "home" / "you"
        self.controller_home = self.home = self.user_home / ".mngr"
        self.repo = self.user_home / "project"
        self.repo.mkdir(parents=True)
        del self.env["MNGR_HOST_DIR"], self.env["MNGR__STOP__GRACE"]
        self.env |= {"HOME": str(self.user_home), "USER": "you"}
        self.git("init", "-q")
        self.write("Makefile", MAKEFILE)
        self.write(".gitignore", "log\n")
        self.commit("first")

    def install_example(self) -> None:
        """Install the example plugin as pip would, which tests/cli/test_plugin.py verifies."""
        site = self.base / "site"
        install(site, "mngr-hello", "[mngr]\nhello = mngr_hello\n", "0.1.0")
        self.env["PYTHONPATH"] += f":{site}:{ROOT / 'examples' / 'mngr-hello' / 'src'}"

    def run(self, block: Block) -> None:
        if block.language == "console":
            for command, expected in commands(block.text):
                self._console(block, command, expected)
        else:
            argv = ["sh", "-eu"] if block.language == "sh" else [sys.executable]
            code, printed = self._run(argv, block.text)
            assert code == 0, f"{block}: exit code {code}\n{printed}"

    def _console(self, block: Block, command: str, expected: list[str]) -> None:
        code, printed = self._run(["sh"], command)
        shown = printed.replace(str(self.user_home), "/home/you").splitlines()
        assert matches(expected, shown), "\n".join(
            (
                f"{block}: $ {command}",
                *(f"  expected: {x}" for x in expected),
                *(f"  printed:  {x}" for x in shown),
            )
        )
        failure = any(line.startswith("mngr: ") for line in expected)
        assert code == 0 or failure, f"{block}: $ {command}: exit code {code}"

    def close(self) -> None:
        """End the tmux server of the example's sandbox too."""
        sandbox = tmux.socket_path(str(self.home / "sandbox"), os.getuid())
        subprocess.run(["tmux", "-S", sandbox, "kill-server"], capture_output=True)
        super().close()

    def _run(self, argv: list[str], script: str) -> tuple[int, str]:
        """Run a shell script; exported variables are kept for later ones, as on a terminal."""
        kept = self.base / "exported"
        if argv[0] == "sh":
            before = f". {kept}\n" if kept.exists() else ""
            script = f"{before}trap 'export -p > {kept}' EXIT\n{script}"
        done = subprocess.run(
            [*argv, "-c", script],
            stdin=subprocess.DEVNULL,
            env=self.env,
            cwd=self.repo,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout
