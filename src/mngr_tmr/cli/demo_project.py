"""Create the demo's jot: a new git repository with known defects, from examples/jot.

The defects are in examples/jot-defects.patch and not in the repository, so agents have to find
them. The same jot gives the same commit everywhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

# In an installed package, and in a checkout.
PLACES = (Path(__file__).parents[1] / "example/jot", Path(__file__).parents[3] / "examples/jot")
JOT = next((place for place in PLACES if place.is_dir()), PLACES[0])
DEFECTS = JOT.with_name("jot-defects.patch")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".mngr-e2e", ".venv")


class CannotPlant(Exception):
    """The directory is not empty."""


def require_empty(folder: Path) -> None:
    """Raise CannotPlant unless this is a new or empty directory."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotPlant(f"{folder} is not empty")


def plant(out: Path) -> str:
    """Write the repository to a new or empty directory and return its commit."""
    require_empty(out)
    shutil.copytree(JOT, out, ignore=LEFT_OUT, dirs_exist_ok=True)
    who = {"NAME": "jot", "EMAIL": "jot@example.com", "DATE": "2026-01-01T12:00:00Z"}
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {f"GIT_{role}_{key}": who[key] for role in ("AUTHOR", "COMMITTER") for key in who}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*args: str) -> str:
        done = subprocess.run(["git", *args], cwd=out, env=env, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "--quiet", "--initial-branch=main")
    git("apply", str(DEFECTS))
    git("add", "--all")
    git("commit", "--quiet", "--message=jot: short notes from the command line")
    return git("rev-parse", "HEAD")
