"""Test map-reduce: one agent per test, one reviewable branch at the end. A plugin of mngr.

Built on mngr's public API, its git wrapper and the artifacts of mngr_e2e.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mngr.plugins.registry import Registry

GROUP = "The rest"


def register(registry: Registry) -> None:
    registry.command(
        "tmr", "mngr_tmr.cli.command", "point an agent at every test, get one branch", group=GROUP
    )
    registry.leftovers("mngr_tmr.cli.removing:leftovers")
    registry.command("view", "mngr_view.command", "look at the report of a run", group=GROUP)
    registry.command("demo", "mngr_tmr.cli.demo", "the whole pipeline on an example", group=GROUP)
