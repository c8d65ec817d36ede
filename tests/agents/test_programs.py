"""The cache of real programs: filled once, and never half."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Stands in for npm: notes each call, and puts a program where the real package has it.
NPM = """#!/bin/sh
echo called >> "$LOG"
[ -z "$BROKEN" ] || { echo "no such version" >&2; exit 1; }
dir=$3/node_modules/@anthropic-ai/claude-code-test-x1
mkdir -p "$dir"
printf '#!/bin/sh\\necho 1\\n' > "$dir/claude"
chmod +x "$dir/claude"
"""
CODE = "from tests.support.programs import program; print(program('claude'))"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "npm").write_text(NPM)
    (tmp_path / "npm").chmod(0o755)
    return {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "LOG": str(tmp_path / "log"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }


def start(env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CODE],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_workers_that_ask_at_once_install_once(env: dict[str, str]) -> None:
    asking = [start(env) for _ in range(3)]
    directories = {each.communicate(timeout=60)[0].strip() for each in asking}
    [directory] = directories
    assert subprocess.check_output([f"{directory}/claude"]) == b"1\n"
    assert Path(env["LOG"]).read_text() == "called\n"


def test_an_install_that_fails_says_why_and_leaves_nothing(env: dict[str, str]) -> None:
    _, err = start(env | {"BROKEN": "1"}).communicate(timeout=60)
    assert "no such version" in err
    agents = Path(env["XDG_CACHE_HOME"], "mngr-tests", "agents")
    assert [each.name for each in agents.iterdir()] == ["claude.lock"]
    assert start(env).communicate(timeout=60)[0]
