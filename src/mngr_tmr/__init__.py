"""Test map-reduce: one agent per test, one reviewable branch at the end. A plugin of mngr.

Built on mngr's public API, its git wrapper and the artifacts of mngr_e2e.
"""

from __future__ import annotations

from mngr.plugins.registry import Registry

GROUP = "Tests"


def register(registry: Registry) -> None:
    registry.command(
        "tmr",
        "mngr_tmr.cli.command",
        "fix tests with one agent each, and build one branch",
        group=GROUP,
    )
    registry.leftovers("mngr_tmr.cli.removing:leftovers")
    registry.command("view", "mngr_view.command", "show the report of a tmr run", group=GROUP)
    registry.command("demo", "mngr_tmr.cli.demo", "run tmr on a small example project", group=GROUP)
