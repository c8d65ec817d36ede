"""Short commands start fast: tests of the modules that they must not import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kite import ROOT

FORBIDDEN = {
    "argparse",
    "asyncio",
    "bz2",
    "contextlib",
    "dataclasses",
    "difflib",
    "importlib.metadata",
    "importlib.resources",
    "inspect",
    "locale",
    "logging",
    "msgspec",
    "pathlib",
    "selectors",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "tomlkit",
    "tomllib",
    "typing",
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
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert "internal error" not in done.stderr
    return {line.rpartition("|")[2].strip() for line in lines} - at_any_start()


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


def test_completing_a_command_does_without_the_parser(tmp_path: Path) -> None:
    modules = imported(tmp_path, "__complete", "--", "c")
    assert modules & (FORBIDDEN | {"mngr.cli.app.parser", "json", "re"}) == set()


def test_a_remote_host_imports_nothing_slow() -> None:
    script = "import sys, mngr.hosts.ssh; print(*sys.modules)"
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/src"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split()) - at_any_start()
    assert "mngr.hosts.shell" in modules
    assert modules & (FORBIDDEN | {"hashlib", "io", "tarfile"}) == set()
