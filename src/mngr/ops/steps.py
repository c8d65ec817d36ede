"""Named steps, at which a test may pause mngr or kill it.

Nothing happens at a step unless a plugin has set `reached` or `within`; no environment variable is
read here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


reached: Callable[[str], None] | None = None
within: Callable[[str], str] | None = None


def step(name: str) -> None:
    if reached:
        reached(name)


def step_of_script(name: str) -> str:
    """Return the line of shell for a step inside a script; empty without a plugin."""
    return within(name) if within else ""
