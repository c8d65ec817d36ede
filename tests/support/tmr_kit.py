"""A tiny project for tests of `mngr tmr`: a command in sh, and end-to-end tests of it.

Each command is a separate file and prints that it is broken; a fix changes one word in it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from tests.support import plugins
from tests.support.cli import Cli

FILE = "tests/test_kit.py"

# Only what these tests require: the plugins of the user would take longer than the tests.
PYTEST = f"env PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {sys.executable} -m pytest -p mngr_e2e.plugin"
SETTINGS = f"""[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]

[tool.mngr_tmr]
pytest = "{PYTEST}"
"""

DISPATCH = """#!/bin/sh
here=${0%/*}/../kit
name=$1
shift
. "$here/$name.sh"
"""

CONFTEST = """from __future__ import annotations

import os

import pytest
from mngr_e2e import E2eSession


@pytest.fixture(autouse=True)
def kit_on_path(e2e: E2eSession) -> None:
    e2e.env["PATH"] = f"{e2e.root}/bin{os.pathsep}{e2e.env['PATH']}"
"""

HEAD = """from __future__ import annotations

from mngr_e2e import E2eSession, expect
"""

TEST = '''

def test_{name}(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
    # {name}: it says {expected}
    kit {command}
    """)
    result = e2e.run("kit {command}", comment="{name}")
    expect(result.stdout).to_contain("{expected}")
'''


@dataclass(frozen=True)
class Spec:
    """One test: what it runs, and the expected output."""

    name: str
    command: str = ""
    expected: str = ""

    @property
    def node_id(self) -> str:
        return f"{FILE}::test_{self.name}"

    def source(self) -> str:
        command = self.command or self.name
        return TEST.format(
            name=self.name, command=command, expected=self.expected or f"{command} works"
        )


def source(*specs: Spec) -> str:
    return HEAD + "".join(spec.source() for spec in specs)


def broken(name: str) -> str:
    return f"echo '{name} is broken'\n"


def mended(name: str) -> str:
    return f"echo '{name} works'\n"


def write(cli: Cli, commands: Mapping[str, str], files: Mapping[str, str]) -> str:
    """Write and commit the project; `commands` are the bodies of kit's own commands."""
    cli.write("bin/kit", DISPATCH).chmod(0o755)
    cli.write("tests/conftest.py", CONFTEST)
    cli.write(
        "pyproject.toml",
        "[tool.pytest.ini_options]\n"
        f"addopts = {json.dumps(['--import-mode=importlib', *plugins.OPTIONS])}\n",
    )
    for name, body in commands.items():
        cli.write(f"kit/{name}.sh", body)
    for name, text in files.items():
        cli.write(name, text)
    return cli.commit("kit")
