"""What the wheel carries, and that the tools people install with accept it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = "import sys, hatchling.build; print(hatchling.build.build_wheel(sys.argv[1]))"


def test_the_wheel_has_manuals_completions_and_types(tmp_path: Path) -> None:
    words = [sys.executable, "-c", BUILD, str(tmp_path)]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(tmp_path / built.stdout.strip()) as wheel:
        names = set(wheel.namelist())
    shared = {name.partition(".data/data/share/")[2] for name in names}
    packages = [each.parent.name for each in (ROOT / "src").glob("*/__init__.py")]
    assert len(packages) >= 5
    assert {f"{each}/py.typed" for each in packages} <= names
    assert {
        f"mngr_tmr/example/{each}" for each in ("jot/tutorial.sh", "jot-defects.patch")
    } <= names
    assert {f"man/man1/{each.name}" for each in (ROOT / "man").glob("*.1")} <= shared
    for script in (
        "bash-completion/completions/mngr",
        "zsh/site-functions/_mngr",
        "fish/vendor_completions.d/mngr.fish",
    ):
        assert script in shared


@pytest.mark.soak
@pytest.mark.parametrize("tool", ["uv", "pipx"])
def test_it_is_installed_with(tool: str, tmp_path: Path) -> None:
    """From a copy: no build may leave anything in the repository."""
    tools, source, bin = tmp_path / "tools", tmp_path / "source", tmp_path / "bin"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    subprocess.run([tools / "bin/pip", "install", "-q", tool], check=True)
    kept = shutil.ignore_patterns(".venv", ".mngr-e2e", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, source, symlinks=True, ignore=kept)
    env = os.environ | {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{tools}/bin:{os.environ['PATH']}",
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(bin),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(bin),
        "PIPX_MAN_DIR": str(tmp_path / "man"),
    }
    words = ["uv", "tool", "install", "."] if tool == "uv" else ["pipx", "install", "."]
    done = subprocess.run(words, cwd=source, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    env = {"PATH": f"{bin}:/usr/bin:/bin", "HOME": str(tmp_path / "home")}
    for command in ("mngr --version", "mngr list", "mngr tmr list", "mngr help tutorial"):
        ran = subprocess.run(command.split(), env=env, capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stderr) == (0, ""), command
    assert tool != "pipx" or (tmp_path / "man/man1/mngr.1").exists()
