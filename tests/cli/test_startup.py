"""Short commands start fast: tests of the modules that they must not import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import Cli
from tests.support.kite import ROOT

FORBIDDEN = {
    "argparse",
    "asyncio",
    "bz2",
    "collections",
    "contextlib",
    "dataclasses",
    "difflib",
    "enum",
    "functools",
    "importlib.metadata",
    "importlib.resources",
    "inspect",
    "json",
    "locale",
    "logging",
    "msgspec",
    "pathlib",
    "re",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "tomlkit",
    "tomllib",
    "typing",
    "warnings",
}

SCRIPT = "import sys; from mngr.cli.app.main import main; sys.exit(main())"


def imported(home: Path, *argv: str) -> set[str]:
    """Return the modules that the command imports, once the index of plugins is written.

    `python -m` would add those of runpy.
    """
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/src"}
    (home / ".mngr").mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", SCRIPT, "help"], env=env, cwd=home, check=True)
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", SCRIPT, *argv],
        env=env,
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert "internal error" not in done.stderr
    return modules_in(done.stderr) - at_any_start()


def modules_in(report: str) -> set[str]:
    lines = [line for line in report.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def at_any_start() -> set[str]:
    """Return the modules that this machine's site-packages import at every start of Python."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "pass"], capture_output=True, text=True
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_the_version_needs_nothing(tmp_path: Path) -> None:
    own = {"mngr", "mngr.cli", "mngr.cli.app", "mngr.cli.app.main"}
    assert imported(tmp_path, "--version") <= {"__future__", *own}


@pytest.mark.parametrize(
    "line", ["help", "list --help", "list --format json", "help --format json"]
)
def test_parsing_imports_nothing_slow(tmp_path: Path, line: str) -> None:
    modules = imported(tmp_path, *line.split())
    assert "mngr.cli.app.parser" in modules
    assert modules & FORBIDDEN == set()


def test_everyday_commands_import_nothing_slow(local: Cli) -> None:
    local.controller_home.mkdir()
    program = ("--no-connect", "--", "sleep", "1000")
    lines = (
        ("create", "a", *program), ("list",), ("exec", "a", "--", "true"), ("diff", "a"),
        ("capture", "a"), ("label", "a", "team=core"), ("stop", "a"), ("start", "a"), ("pull", "a"),
        ("destroy", "--force", "a"), ("restore", "a"),
    )  # fmt: skip
    usual, slow = at_any_start(), {}
    for line in (("help",), *lines):  # the first writes the index of plugins
        # `python -m` would import runpy, and that functools.
        argv = [sys.executable, "-X", "importtime", "-c", SCRIPT, *line]
        done = subprocess.run(argv, env=local.env, cwd=local.repo, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        slow[line[0]] = (modules_in(done.stderr) - usual) & FORBIDDEN
    assert slow.pop("help")
    assert slow == {line[0]: set() for line in lines}


def test_completing_a_command_does_without_the_parser(tmp_path: Path) -> None:
    modules = imported(tmp_path, "__complete", "--", "c")
    assert modules & (FORBIDDEN | {"mngr.cli.app.parser"}) == set()


def test_a_remote_host_imports_nothing_slow() -> None:
    script = "import sys, mngr.hosts.ssh; print(*sys.modules)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/src"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split()) - at_any_start()
    assert "mngr.hosts.shell" in modules
    assert modules & (FORBIDDEN | {"hashlib", "io", "tarfile"}) == set()
