"""Named steps, at which a test may pause mngr or kill it.

Nothing happens at a step unless a plugin has set `reached`; no environment variable is read here.
"""

from __future__ import annotations

from collections.abc import Callable

reached: Callable[[str], None] | None = None


def step(name: str) -> None:
    if reached:
        reached(name)
