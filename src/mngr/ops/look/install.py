"""Install programs with the package manager of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable

from mngr.errors import MngrError
from mngr.hosts import spawn

INSTALL = {
    "apt-get": "apt-get install -y",
    "dnf": "dnf install -y",
    "apk": "apk add",
    "pacman": "pacman -S --needed",
    "zypper": "zypper install",
    "brew": "brew install",
}
APT = "apt-get -o DPkg::Lock::Timeout=120"
"""Wait for the lock: a fresh machine often installs updates, and apt-get would fail at once."""
QUIET = {
    **INSTALL,
    "apt-get": f"{APT} install -y",
    "pacman": "pacman -S --needed --noconfirm",
    "zypper": "zypper -n install",
}
"""The same commands without questions."""
LONG = 900.0
"""Seconds that an installation may take."""


def installing(tool: str, package: str) -> Callable[[], None] | None:
    """Return a function that installs a package with this package manager.

    None if it requires a password, or if there is no known package manager.
    """
    words = _permitted(tool)
    return None if words is None else lambda: _install([*words, package])


def _permitted(tool: str) -> list[str] | None:
    if not tool:
        return None
    words = QUIET[tool].split()
    if tool == "brew":
        return None if os.geteuid() == 0 else words
    if tool == "apt-get":
        words = ["env", "DEBIAN_FRONTEND=noninteractive", *words]
    if os.geteuid() == 0:
        return words
    return ["sudo", "-n", *words] if _succeeds(["sudo", "-n", "true"]) else None


def _succeeds(argv: list[str]) -> bool:
    try:
        return spawn.run(argv, timeout=20).code == 0
    except MngrError:  # there is no sudo
        return False


def _install(argv: list[str]) -> None:
    done = spawn.run(argv, timeout=LONG)
    if done.code and "apt-get" in argv:  # a fresh image has no package lists
        update = [*argv[: argv.index("install")], "update"]
        if spawn.run(update, timeout=LONG).code == 0:
            done = spawn.run(argv, timeout=LONG)
    done.raise_if_failed(f"`{' '.join(argv)}` failed")
