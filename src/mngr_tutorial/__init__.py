"""`mngr tutorial`, a plugin of mngr: keep a tutorial and the tests that cite it in sync."""

from __future__ import annotations

from mngr.plugins.registry import Registry

GROUP = "Tests"


def register(registry: Registry) -> None:
    registry.command(
        "tutorial", "mngr_tutorial.command", "keep a tutorial and its tests in sync", group=GROUP
    )
