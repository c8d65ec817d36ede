"""Third-party programs and projects, installed once per machine into a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterable
from pathlib import Path

COMPLETE = "complete"


def environment(name: str, requirements: Iterable[str], *, deps: bool = False) -> Path:
    """Return a virtual environment with these packages, created in its final place.

    Its scripts contain the full path of the interpreter. A file marks that it is complete.

    """
    wanted = sorted(requirements)
    told = "\n".join([sys.version, *wanted]).encode()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base, "mngr-tests", f"{name}-{hashlib.sha256(told).hexdigest()[:12]}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another worker may install the same now
        if not (folder / COMPLETE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            venv.create(folder, symlinks=True)
            options = ["--disable-pip-version-check", *([] if deps else ["--no-deps"])]
            pip("--python", str(folder / "bin" / "python"), "install", *options, *wanted)
            (folder / COMPLETE).touch()
    return folder


def source(package: str, folder: Path) -> Path:
    """Return the source of a package as released, with its tests, next to its environment."""
    name, _, version = package.partition("==")
    place = folder / "source" / f"{name}-{version}"
    with open(folder.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / COMPLETE).exists():
            shutil.rmtree(place.parent, ignore_errors=True)
            place.parent.mkdir()
            pip("download", "--no-deps", "--no-binary", name, "-d", str(place.parent), package)
            with tarfile.open(next(place.parent.glob("*.tar.gz"))) as archive:
                archive.extractall(place.parent, filter="data")
            (place / COMPLETE).touch()
    return place


def pip(*words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--quiet", *words]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
