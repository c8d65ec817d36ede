"""Install the real coding agents, once per machine, into a cache that all tests share."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Package:
    """The package to install, and candidates for its program; the first that runs is used."""

    name: str
    version: str
    files: tuple[str, ...]


# The native binaries are in packages for one platform each. Links to them replace the install
# scripts that would copy them, which npm runs or refuses depending on its version and settings.
PACKAGES = {
    "claude": Package(
        "@anthropic-ai/claude-code", "2.1.325", ("@anthropic-ai/claude-code-*/claude",)
    ),
    "codex": Package("@openai/codex", "0.166.0", (".bin/codex",)),
    # The one whose name ends in "baseline" runs on any processor; the other one is faster.
    "opencode": Package(
        "opencode-ai", "1.18.33", ("opencode-*[!e]/bin/opencode", "opencode-*/bin/opencode")
    ),
}


@cache
def program(name: str) -> str:
    """Return the directory of the program, for a PATH; install it first if it is missing."""
    package = PACKAGES[name]
    target = cache_directory() / f"{name}-{package.version}"
    if not (target / "bin" / name).exists():
        install(name, package, target)
    return str(target / "bin")


def path_with(*names: str) -> str:
    """This process's PATH with these programs in front."""
    return os.pathsep.join([*map(program, names), os.environ["PATH"]])


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "mngr-tests", "agents")


def install(name: str, package: Package, target: Path) -> None:
    """Install it once for all workers; a directory with the final name is complete."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target.parent / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (target / "bin" / name).exists():
            return
        new = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
        try:
            fetch(package, new)
            link(name, package, new)
            # A directory whose removal was interrupted has no program in it.
            shutil.rmtree(target, ignore_errors=True)
            new.rename(target)
        finally:
            shutil.rmtree(new, ignore_errors=True)


def fetch(package: Package, where: Path) -> None:
    words = ["npm", "install", "--prefix", str(where), "--no-save", "--no-audit", "--no-fund"]
    done = subprocess.run(
        [*words, "--ignore-scripts", f"{package.name}@{package.version}"],
        cwd=where,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"cannot install {package.name}:\n{done.stderr}"


def link(name: str, package: Package, where: Path) -> None:
    """Create bin/NAME as a relative link, which remains valid when the directory is renamed."""
    (where / "bin").mkdir()
    found = [path for file in package.files for path in sorted(where.glob(f"node_modules/{file}"))]
    for path in found:
        if runs(path):
            os.symlink(os.path.relpath(path, where / "bin"), where / "bin" / name)
            return
    raise AssertionError(f"none of {found} runs here")


def runs(path: Path) -> bool:
    """Return whether it runs; a build for another processor or C library fails at once."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [path, "--version"],
            env={"HOME": home, "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
    return done.returncode == 0
